"""The rows of the table: what is measured, with what, in which unit, and what it should come to."""
import os
from dataclasses import dataclass, field

from measure import printed_numbers, run_program, run_redis

TALLY = ["tags", "auto", "dormant"]
OTHERS = ["heaptrack", "jemalloc", "jemalloc-prof", "tcmalloc", "gperftools"]


@dataclass
class Row:
    name: str
    title: str
    unit: str
    variants: list            # names; the base of each is measured too
    once: object              # once(variant, share) -> {metric: value}; share: 1, or less for slow variants
    targets: dict             # variant -> the ratio to its base, or, where absolute, the value
    absolute: bool = False    # the target is a value, not a ratio
    rounds: int = 9
    group: str = ""
    metrics: dict = field(default_factory=dict)  # further figures of one measurement: name -> (title, unit, target)


def tag_scopes(program, linked, share):
    count = int(20_000_000 * share)

    def scope(kind, threads, binary=program, divide=1):
        return lambda variant, _: {"": printed_numbers(variant, [binary, kind, str(threads), str(count // divide)])[0]}

    off = {"group": "scope", "unit": "ns", "absolute": True}
    yield Row("scope-absent", "tag scope, library absent", variants=["bare"], once=scope("literal", 1),
              targets={"bare": 0.5}, **off)
    yield Row("scope-linked", "tag scope, linked, not started", variants=["bare"], once=scope("literal", 1, linked),
              targets={"bare": 0.5}, **off)
    yield Row("scope-dormant", "tag scope, preloaded, dormant", variants=["dormant"], once=scope("literal", 1),
              targets={"dormant": 0.5}, **off)
    for threads in 1, 2:
        plural = "s" if threads > 1 else ""
        yield Row(f"scope-literal-{threads}", f"literal tag scope, active, {threads} thread{plural}", variants=["tags"],
                  once=scope("literal", threads, divide=4), targets={"tags": 5}, **off)
        yield Row(f"scope-dynamic-{threads}", f"dynamic name, active, {threads} thread{plural}", variants=["tags"],
                  once=scope("dynamic", threads, divide=10), targets={"tags": 30}, **off)


def churns(program, share):
    def churn(threads, live):
        def once(variant, slowness):
            pairs = max(10_000, int(4_000_000 * share / slowness ** 1.5))
            return {"": printed_numbers(variant, [program, str(threads), str(live), str(pairs)])[0]}
        return once

    for threads in 1, 2:
        for live in 1000, 10000:
            yield Row(f"churn-{threads}-{live // 1000}k",
                      f"churn, {live // 1000} k live, {threads} thread{'s' if threads > 1 else ''}", "ns",
                      TALLY + OTHERS, churn(threads, live), {"tags": 1.5, "auto": 1.5}, group="churn")


def programs(work, quick):
    every = ["tags", "auto", "run"] + OTHERS
    targets = {"tags": 1.05, "auto": 1.05, "run": 1.05}
    common = {"unit": "s", "variants": every, "targets": targets, "group": "program", "rounds": 5}
    python = "/usr/bin/python3"

    def program(argv_of, more=None, once_text=True):
        def once(variant, _):
            figures = run_program(variant, argv_of(), more)
            digest = {"digest": figures["digest"]} if once_text and not variant.talks else {}
            return {"": figures["wall_s"], "cpu": figures["cpu_s"], **digest}
        return once

    def redis(variant, slowness):
        figures = run_redis(variant, int((60_000 if quick else 250_000) / slowness))
        share = 1 / slowness  # slow variants get fewer requests: figures per same number of requests
        return {"": figures["wall_s"] / share, "cpu": figures["cpu_s"] / share}

    yield Row("sqlite3", "sqlite3, script", once=program(
        lambda: ["sqlite3", "-batch", ":memory:", f".read {work.sql()}"]), **common)
    yield Row("redis", "redis-server, redis-benchmark", once=redis, **common)
    yield Row("cc1plus", "cc1plus, templates", once=program(
        lambda: [work.compiler(), "-quiet", "-O0", "-std=c++17", "-fpreprocessed", work.preprocessed(), "-o", "/dev/null"]),
        **common)
    yield Row("python3", "python3, PYTHONMALLOC=malloc", once=program(
        lambda: [python, os.path.join(work.source, "objects.py"), "25" if quick else "60"],
        {"PYTHONMALLOC": "malloc", "PYTHONHASHSEED": "0"}), **common)
    yield Row("git", "git log -p", once=program(
        lambda: ["git", "-C", work.repository(), "--no-pager", "log", "-p"]), **common)


def memory(program, quick):
    megabytes = "40" if quick else "150"

    def heap(low, high):
        return lambda variant, _: {"": printed_numbers(variant, [program, megabytes, str(low), str(high)])[0] / 1024}

    common = {"unit": "MiB", "variants": ["tags", "auto", "heaptrack"], "group": "memory", "rounds": 3}
    targets = {"tags": 1.30, "auto": 1.30}
    yield Row("rss-16-64", f"peak RSS, {megabytes} MiB in blocks of 16..64 B", once=heap(16, 64), targets=targets, **common)
    yield Row("rss-16", f"peak RSS, {megabytes} MiB in blocks of 16 B", once=heap(16, 16), targets=targets, **common)
    yield Row("rss-24", f"peak RSS, {megabytes} MiB in blocks of 24 B", once=heap(24, 24), targets=targets, **common)


def snapshots(program, quick):
    def once(variant, _):
        nodes, ms, cpu_ms, stalled_us, alone_us = printed_numbers(variant, [program, "100000", "64", "300" if quick else "1000"])
        if nodes < 100000:
            raise AssertionError(f"{nodes:.0f} nodes instead of 100,000")
        return {"": ms, "processor": cpu_ms, "stall": stalled_us, "alone": alone_us}

    yield Row("snapshot", "snapshot, 100,000 nodes, 64 threads", "ms", ["tags"], once, {"tags": 10}, absolute=True,
              rounds=7, group="snapshot",
              metrics={"processor": ("snapshot, 100,000 nodes, 64 threads: processor time", "ms", 10),
                       "stall": ("longest step of an allocating thread during snapshots", "us", 100),
                       "alone": ("longest step of the same thread without snapshots", "us", None)})


def spawns(program, quick):
    def spawn(mode):
        def once(variant, slowness):
            count = str(max(5, int((60 if quick else 150) / slowness)))
            us, cpu_us = printed_numbers(variant, [program, mode, count, "10000", "100000"])
            return {"": us, "cpu": cpu_us}
        return once

    common = {"unit": "us", "group": "spawn", "rounds": 7}
    yield Row("fork-exec", "fork + exec, child followed", once=spawn("follow"),
              variants=["tags", "auto", "run"], targets={"tags": 1.3, "auto": 1.3, "run": 1.3}, **common)
    yield Row("fork-exec-leave", "fork + exec, child not preloaded", once=spawn("leave"),
              variants=["tags", "auto"], targets={"tags": 1.3, "auto": 1.3}, **common)


def rows(build, work, quick):
    def binary(name):
        return os.path.join(build, "bench", f"bench_{name}")

    share = 0.25 if quick else 1
    yield from tag_scopes(binary("scope"), binary("scope_linked"), share)
    yield from churns(binary("churn"), share)
    yield from programs(work, quick)
    yield from memory(binary("heap"), quick)
    yield from snapshots(binary("snapshot"), quick)
    yield from spawns(binary("spawn"), quick)
