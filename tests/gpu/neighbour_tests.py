"""Tests 15 and 16: loaders that look past a preloaded library, and another library beside ours."""

import contextlib
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from gpu.bench import Bench
from gpu.machine import MIB, driver_file
from gpu.programs import Program, built, ran
from gpu.report import Row, judged, skipped, timed
from gpu.tenants import Home, Tenant
from native import build

LIMIT = 2048 * MIB


def escapes(bench: Bench) -> list[Row]:
    """Test 15: who comes past the library is seen by the server, or limited by the proxy."""
    return [*_bare(bench), *_deep(bench), _behind_proxy(bench)]


def _bare(bench: Bench) -> Iterator[Row]:
    """A program of a container that never registers."""
    with bench.tenants.one(memory=1024 * MIB, percent=30) as it:
        bare = Home(bench.machine.environment(it.tag), it.home.procs)
        yield _seen(bench, it, "use without registration seen after", bare, "hold", 4096)


def _deep(bench: Bench) -> Iterator[Row]:
    """A library loaded with RTLD_DEEPBIND, in a program that has ours preloaded."""
    with bench.tenants.one(memory=1024 * MIB, percent=30) as it:
        words = ("deep", 4096, built("deep.so"))
        yield _seen(bench, it, "a DEEPBIND loader's use seen after", it.home, *words)


def _seen(bench: Bench, it: Tenant, what: str, at: Home, *words: object) -> Row:
    if (agent := bench.tenants.agent) is None:
        return skipped(15, what, "only a vGPU server sees it (needs root)")
    began = time.monotonic()
    program = Program("memory", *words, at=at)
    result = program.line()["result"]
    seen = False
    while not seen and time.monotonic() - began < 15:
        time.sleep(0.1)
        seen = f"container {it.tag}" in agent.log()
    took = time.monotonic() - began
    program.go()
    program.end()
    if result:
        return judged(15, what, "<= 5 s", f"it got no memory: CUresult {result}", True)
    shown = f"{took:.1f} s" if seen else "not in 15 s"
    holds = seen and took <= 5
    return timed(15, what, "<= 5 s", shown, holds, is_fake=bench.machine.is_fake and seen)


def _behind_proxy(bench: Bench) -> Row:
    """With our library in the driver's place there is nothing to look past."""
    what, required = "DEEPBIND, dlmopen behind the proxy", "over the limit: refused"
    proxy = build.LIBRARIES / "proxy"
    if (driver := driver_file()) is None:
        return skipped(15, what, "the driver's file is not known")
    with bench.tenants.one(memory=LIMIT) as it:
        environment = dict(it.home.environment)
        environment.pop("LD_PRELOAD", None)
        environment["ALNAIR_VGPU_DRIVER"] = str(driver)
        old = environment.get("LD_LIBRARY_PATH")
        environment["LD_LIBRARY_PATH"] = f"{proxy}:{old}" if old else str(proxy)
        words = ["-c", 'test -z "$0" || echo $$ > "$0"; exec "$@"', it.home.procs]
        words += [str(built("deepbind")), str(LIMIT // MIB)]
        done = build.run("/bin/sh", *words, environment=environment)
    shown = ", ".join(done.stdout.split("\n")).strip(", ") or done.stderr.strip()[-80:]
    results = dict(line.split() for line in done.stdout.splitlines())
    # Where the loader opens no second namespace (-1), nobody gets past us in one.
    refused = results.get("deepbind") == "2" and results.get("dlmopen") not in (None, "0")
    return judged(15, what, required, shown, refused and not done.returncode)


def beside(bench: Bench) -> list[Row]:
    """Test 16: another preloaded library, before ours and behind it: the limit is the same."""
    rows = []
    with bench.tenants.one(memory=LIMIT) as it:
        alone = ran("memory", "boundary", 2, at=it.home)
    for where in ("before", "behind"):
        with bench.tenants.one(memory=LIMIT) as it, _counted() as out:
            both = [str(built("beside.so")), it.home.environment["LD_PRELOAD"]]
            preload = " ".join(both if where == "before" else reversed(both))
            more = {"LD_PRELOAD": preload, "BESIDE_OUT": str(out)}
            home = Home({**it.home.environment, **more}, it.home.procs)
            found = ran("memory", "boundary", 2, at=home)
            calls = int(out.read_text() or 0)
        what = f"another library {where} ours"
        rows.append(judged(16, f"{what}: boundary", f"{alone}", f"{found}", found == alone))
        if where == "before":
            rows.append(judged(16, f"{what}: calls it sees", "> 0", f"{calls}", calls > 0))
    return rows


@contextlib.contextmanager
def _counted() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="alnair-beside-") as folder:
        path = Path(folder, "calls")
        path.write_text("")
        yield path
