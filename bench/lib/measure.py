"""One measurement: starts a command under a variant and returns its figures."""
import hashlib
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time

TIMEOUT_S = 120
SLOW_TIMEOUT_S = 20  # for variants known as slow: their row then says that they took longer


class Failed(Exception):
    """What could not be measured, in a sentence."""


class TookTooLong(Failed):
    """It did not end in time."""


def timeout_of(variant):
    return SLOW_TIMEOUT_S if variant.slow >= 20 else TIMEOUT_S


def environment(scratch, variant=None, more=None):
    """A small, fixed environment: what the user has set must not change the figures."""
    result = {"PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "HOME": scratch, "LC_ALL": "C", "TMPDIR": scratch,
              "GIT_CONFIG_NOSYSTEM": "1"}
    result.update(more or {})
    if variant:
        result.update(variant.environ(scratch))
    return result


class Scratch:
    """A directory for one measurement, in memory if there is room, gone afterwards."""

    def __enter__(self):
        self.path = tempfile.mkdtemp(prefix="bench-", dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
        return self.path

    def __exit__(self, *_):
        shutil.rmtree(self.path, ignore_errors=True)


def run_program(variant, argv, more=None):
    """Runs it to its end. Returns wall and processor seconds, and its output's text and digest."""
    with Scratch() as scratch:
        output = os.path.join(scratch, "stdout")
        with open(output, "wb") as out, open(os.path.join(scratch, "stderr"), "wb") as err:
            start = time.monotonic()
            process = subprocess.Popen(variant.command(argv, scratch), stdin=subprocess.DEVNULL, stdout=out, stderr=err,
                                       env=environment(scratch, variant, more), cwd=scratch,
                                       start_new_session=True)
            wall_s, cpu_s = wait(process, start, timeout_of(variant))
        if process.returncode != 0:
            with open(os.path.join(scratch, "stderr"), errors="replace") as err:
                last = err.read().strip().splitlines()[-1:] or [""]
            raise Failed(f"{os.path.basename(argv[0])} ended with {process.returncode}: {last[0]}")
        with open(output, "rb") as out:
            digest = hashlib.file_digest(out, "sha256").hexdigest() if hasattr(hashlib, "file_digest") \
                else hashlib.sha256(out.read()).hexdigest()
            out.seek(0)
            text = out.read(65536).decode(errors="replace")
        return {"wall_s": wall_s, "cpu_s": cpu_s, "digest": digest, "text": text}


def wait(process, start, timeout_s):
    """Wall and processor seconds until the process's end; kills it when it takes too long."""
    def too_long(*_):
        os.killpg(process.pid, signal.SIGKILL)  # a session of its own: helpers that it started end too

    previous = signal.signal(signal.SIGALRM, too_long)
    signal.setitimer(signal.ITIMER_REAL, max(0.001, timeout_s - (time.monotonic() - start)))
    try:
        _, status, usage = os.wait4(process.pid, 0)
    except KeyboardInterrupt:
        os.killpg(process.pid, signal.SIGKILL)
        raise
    wall_s = time.monotonic() - start
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, previous)
    process.returncode = os.waitstatus_to_exitcode(status)
    if wall_s >= timeout_s:
        raise TookTooLong(f"over {timeout_s} s")
    return wall_s, usage.ru_utime + usage.ru_stime


def printed_numbers(variant, argv, more=None):
    """Runs a benchmark program and returns the numbers on the line that holds nothing else."""
    text = run_program(variant, argv, more)["text"]
    for line in text.splitlines():
        if re.fullmatch(r"-?[0-9.]+( -?[0-9.]+)*", line.strip()):
            return [float(word) for word in line.split()]
    raise Failed(f"{os.path.basename(argv[0])} printed no figures")


def run_redis(variant, requests):
    """A server under the variant, a client beside it. Returns the client's wall and the server's processor seconds."""
    with Scratch() as scratch:
        socket = os.path.join(scratch, "redis.sock")
        server = ["redis-server", "--port", "0", "--unixsocket", socket, "--save", "", "--appendonly", "no",
                  "--dir", scratch, "--daemonize", "no"]
        plain = environment(scratch)
        with open(os.path.join(scratch, "stdout"), "wb") as out:
            start = time.monotonic()
            process = subprocess.Popen(variant.command(server, scratch), stdin=subprocess.DEVNULL, stdout=out,
                                       stderr=out, env=environment(scratch, variant), cwd=scratch,
                                       start_new_session=True)
            ended = False
            try:
                while not os.path.exists(socket):
                    if process.poll() is not None or time.monotonic() - start > 20:
                        raise Failed("redis-server did not start")
                    time.sleep(0.01)
                begin = time.monotonic()
                subprocess.run(["redis-benchmark", "-s", socket, "-n", str(requests), "-c", "20", "-P", "8", "-r", "20000",
                                "-d", "64", "-q", "-t", "set,get,lpush,lpop,sadd,hset"], env=plain, check=True,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=timeout_of(variant))
                wall_s = time.monotonic() - begin
                subprocess.run(["redis-cli", "-s", socket, "shutdown", "nosave"], env=plain, stdout=subprocess.DEVNULL,
                               stderr=subprocess.DEVNULL, timeout=20)
                _, cpu_s = wait(process, time.monotonic(), TIMEOUT_S)
                ended = True
            except subprocess.TimeoutExpired as error:
                raise TookTooLong(f"over {timeout_of(variant)} s") from error
            except subprocess.CalledProcessError as error:
                raise Failed(f"redis-benchmark: {error}") from error
            finally:
                if not ended and process.poll() is None:
                    process.terminate()
                    process.wait()
        return {"wall_s": wall_s, "cpu_s": cpu_s}
