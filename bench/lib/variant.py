"""Variants: the same program bare, under Tally, and under other tools.

A variant says how to start a command and what its figures are compared with: a profiler that comes with an allocator of
its own is compared with that allocator, not with glibc's, so that each ratio is the price of the profiling alone.
"""
import glob
import os
import shutil
from dataclasses import dataclass, field


@dataclass
class Variant:
    name: str                 # as --variant takes it
    title: str                # a column's head
    base: str                 # the variant its ratio is taken to; its own name: none
    environment: dict = field(default_factory=dict)
    wrapper: list = field(default_factory=list)
    missing: str = ""         # why it cannot be run here; "": it can
    slow: int = 1             # how many times fewer pairs and rounds are asked of it
    talks: bool = False       # writes on the program's standard output, so outputs are not compared

    def command(self, argv, scratch):
        return [word.replace("@SCRATCH@", scratch) for word in self.wrapper] + argv

    def environ(self, scratch):
        return {key: value.replace("@SCRATCH@", scratch) for key, value in self.environment.items()}


def shared_library(name):
    """The path of a library as Debian installs it, or None."""
    found = glob.glob(f"/usr/lib/*/{name}") + glob.glob(f"/usr/lib/{name}")
    return found[0] if found else None


def variants(build):
    """All of them, by name, with what is not there marked as missing."""
    tally = os.path.join(build, "src", "libtally.so")
    command = os.path.join(build, "cli", "tally")
    jemalloc, tcmalloc = shared_library("libjemalloc.so.2"), shared_library("libtcmalloc.so.4")
    heaptrack = shutil.which("heaptrack")
    no_tally = "" if os.path.exists(tally) else f"{tally} is not built"
    no_command = "" if os.access(command, os.X_OK) else f"{command} is not built"
    no_jemalloc = "" if jemalloc else "libjemalloc2 is not installed"
    no_tcmalloc = "" if tcmalloc else "libgoogle-perftools4 is not installed"

    def preload(conf):
        return {"LD_PRELOAD": tally, "TALLY_CONF": f"{conf},quiet:true,output:@SCRATCH@/%n.%p.tally"}

    every = [
        Variant("bare", "bare", "bare"),
        Variant("tags", "Tally, tags", "bare", preload("tags:true,auto_tags:none"), missing=no_tally),
        Variant("auto", "Tally, module+caller", "bare", preload("tags:true,auto_tags:module+caller"), missing=no_tally),
        Variant("run", "tally run", "bare", wrapper=[command, "run", "--quiet", "-o", "@SCRATCH@/%n.%p.tally", "--"],
                missing=no_tally or no_command),
        Variant("dormant", "Tally, dormant", "bare", preload("tags:false"), missing=no_tally),
        Variant("heaptrack", "heaptrack", "bare", wrapper=["heaptrack", "-o", "@SCRATCH@/heaptrack"],
                missing="" if heaptrack else "heaptrack is not installed", slow=4, talks=True),
        Variant("jemalloc", "jemalloc", "jemalloc", {"LD_PRELOAD": jemalloc or ""}, missing=no_jemalloc),
        Variant("jemalloc-prof", "jemalloc prof", "jemalloc",
                {"LD_PRELOAD": jemalloc or "", "MALLOC_CONF": "prof:true,prof_final:true,prof_prefix:@SCRATCH@/jeprof"},
                missing=no_jemalloc),
        Variant("tcmalloc", "tcmalloc", "tcmalloc", {"LD_PRELOAD": tcmalloc or ""}, missing=no_tcmalloc),
        Variant("gperftools", "gperftools", "tcmalloc",
                {"LD_PRELOAD": tcmalloc or "", "HEAPPROFILE": "@SCRATCH@/heapprofile"}, missing=no_tcmalloc, slow=20,
                talks=True),
    ]
    return {variant.name: variant for variant in every}
