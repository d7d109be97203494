"""What the real programs work on, made anew from nothing random and kept in one directory."""
import os
import random
import subprocess

from measure import environment

SQL = """\
create table word(id integer primary key, text text, weight real, note blob);
with recursive n(i) as (select 1 union all select i + 1 from n where i < {rows})
  insert into word select i, printf('word %d %x', i * 7919 % {rows}, i), i * 1.5, zeroblob(i % 200) from n;
create index word_text on word(text);
select count(*), sum(length(text)), max(weight) from word where text like 'word 1%';
select substr(text, 1, 7) head, count(*), group_concat(id % 10, '') from word group by head order by head limit 20;
with recursive n(i) as (select 1 union all select i + 1 from n where i < {rows} * 3)
  select sum(length(printf('%d-%s-%s', i, hex(i), upper(printf('%x', i))))) from n;
select count(*) from word a join word b on b.id = a.id * 7919 % {rows} + 1 where a.text < b.text;
update word set text = text || '!' where id % 3 = 0;
delete from word where id % 5 = 0;
select count(*), sum(length(text)) from word;
"""


class Workloads:
    """Paths of the inputs; each is made when it is first asked for."""

    def __init__(self, directory, source, quick):
        self.directory, self.source, self.quick = directory, source, quick

    def _path(self, name):
        return os.path.join(self.directory, name)

    def sql(self):
        path = self._path("work.sql")
        if not os.path.exists(path):
            with open(path, "w") as out:
                out.write(SQL.replace("{rows}", "40000" if self.quick else "100000"))
        return path

    def preprocessed(self):
        """A template-heavy C++ file with its headers inside, so that the compiler proper is all that runs."""
        path = self._path("templates.ii")
        if not os.path.exists(path):
            subprocess.run(["g++", "-std=c++17", "-E", os.path.join(self.source, "templates.cpp"), "-o", path], check=True,
                           env=environment(self.directory))
        return path

    def compiler(self):
        return subprocess.run(["g++", "-print-prog-name=cc1plus"], check=True, capture_output=True, text=True).stdout.strip()

    def repository(self):
        """A git repository of a few hundred commits over a few dozen files, by one fast-import."""
        path = self._path("repository")
        if not os.path.exists(path):
            run = {"check": True, "env": environment(self.directory), "stdout": subprocess.DEVNULL}
            subprocess.run(["git", "init", "-q", "-b", "main", path], **run)
            subprocess.run(["git", "-C", path, "fast-import", "--quiet"], input=self._commits(), **run)
        return path

    def _commits(self):
        rng = random.Random(1)
        words = ["memory", "block", "owner", "tree", "node", "thread", "ledger", "byte", "page", "stack", "path", "name"]
        files = [[" ".join(rng.choices(words, k=8)) for _ in range(300)] for _ in range(40)]
        out = []
        for commit in range(150 if self.quick else 500):
            message = f"change {commit}"
            out.append(f"commit refs/heads/main\ncommitter A <a@example.org> {1700000000 + commit * 60} +0000\n"
                       f"data {len(message)}\n{message}\n")
            for index in range(40) if commit == 0 else rng.sample(range(40), 6):
                lines = files[index]
                for _ in range(8):
                    lines[rng.randrange(len(lines))] = " ".join(rng.choices(words, k=8))
                text = "\n".join(lines) + "\n"
                out.append(f"M 100644 inline source/{index}.txt\ndata {len(text)}\n{text}\n")
        return "".join(out).encode()
