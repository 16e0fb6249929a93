"""Tests 10 and 11: PyTorch trains within its limit, and goes on after it ran out of memory.

With the PyTorch that the machine has; where it has none, the driver calls of a training that were
recorded are made again, whose results must be the same with the library as without.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from gpu.bench import Bench
from gpu.machine import MIB
from gpu.programs import built, script
from gpu.report import Row, judged, skipped, timed
from gpu.tenants import Home
from native import build

ALLOCATORS = ("", "expandable_segments:True", "backend:cudaMallocAsync")
LIMIT = 20000 * MIB
CYCLES = 50
SEQUENCES = Path(build.CLIENTS).parent / "sequences"
RECORDED = ("pytorch-default", "pytorch-expandable", "pytorch-malloc-async", "pytorch-graph")


def _torch(name: str, *arguments: object, at: Home, allocator: str) -> dict[str, Any]:
    more = {"PYTORCH_CUDA_ALLOC_CONF": allocator} if allocator else {}
    done = script(name, *arguments, at=Home({**at.environment, **more}, at.procs), python=_python())
    if done.returncode:
        return {"failed": done.stderr.strip()[-200:]}
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _missing(bench: Bench) -> str:
    """Why there is no PyTorch that sees the GPU, or ""."""
    code = "import torch; print(torch.version.cuda, torch.cuda.is_available())"
    at = bench.tenants.free().environment
    try:
        done = build.run(_python(), "-c", code, environment=at, timeout=120)
    except OSError as error:
        return f"{_python()}: {error.strerror}"
    if done.returncode:
        return "PyTorch is not installed"
    return (
        "" if done.stdout.endswith(" True\n") else f"its PyTorch has no GPU: {done.stdout}".strip()
    )


def _python() -> str:
    """The Python that has PyTorch, where that is another one."""
    return os.environ.get("ALNAIR_TORCH_PYTHON") or sys.executable


def training(bench: Bench) -> list[Row]:
    """Test 10: a small GPT, three allocators: same losses with and without, within the limit."""
    if why := _missing(bench):
        return [skipped(10, "PyTorch training", why), *_replayed(bench)]
    rows = []
    steps = bench.count(1000)
    for allocator in ALLOCATORS:
        name = allocator or "default allocator"
        free = _torch("train.py", steps, at=bench.tenants.free(), allocator=allocator)
        if "failed" in free:
            rows.append(skipped(10, name, f"fails without limits: {free['failed']}"))
            continue
        with bench.tenants.one(memory=LIMIT) as it:
            got = _torch("train.py", steps, at=it.home, allocator=allocator)
        same = got.get("losses") == free["losses"]
        shown = "identical" if same else got.get("failed", "other")
        rows.append(judged(10, f"{name}: losses of {steps} steps", "identical", shown, same))
        if same:
            slower = 100 * got["seconds"] / free["seconds"] - 100
            fake = bench.machine.is_fake
            rows.append(
                timed(10, f"{name}: slower", "<= 1 %", f"{slower:.1f} %", slower <= 1, is_fake=fake)
            )
    return rows


def recovery(bench: Bench) -> list[Row]:
    """Test 11: over the limit is torch.OutOfMemoryError; after empty_cache the next step runs."""
    if why := _missing(bench):
        return [skipped(11, "PyTorch out of memory", why)]
    rows = []
    for allocator in ALLOCATORS:
        name = allocator or "default allocator"
        with bench.tenants.one(memory=LIMIT) as it:
            got = _torch("run_out.py", CYCLES, LIMIT // MIB, at=it.home, allocator=allocator)
        went_on = got.get("went_on", 0)
        shown = f"{went_on} of {CYCLES} {got.get('failed', '')}".strip()
        names = got.get("names_limit") == 1
        capacity = f"{got.get('capacity')}"
        rows += [
            judged(11, f"{name}: went on", f"{CYCLES} of {CYCLES}", shown, went_on == CYCLES),
            judged(11, f"{name}: capacity in its words", f"{LIMIT // MIB} MiB", capacity, names),
        ]
    return rows


def _replayed(bench: Bench) -> list[Row]:
    """Test 10 without PyTorch: what PyTorch asked of a driver, asked again."""
    rows = []
    for name in RECORDED:
        what = f"{name}, recorded: results"
        free = _replay(name, bench.tenants.free())
        if free[1] < 0:
            rows.append(skipped(10, what, f"it fails without limits, too (signal {-free[1]})"))
            continue
        with bench.tenants.one(memory=bench.machine.total, percent=90) as it:
            got = _replay(name, it.home)
        calls, _, _, other, *_ = [*free[0].split(), "0", "0", "0", "0"]
        shown = f"{calls} calls, {other} other than recorded; "
        shown += "the same with the library" if got == free else f"with the library: {got[2][-60:]}"
        rows.append(judged(10, what, "as without the library", shown, got == free))
    return rows


def _replay(name: str, at: Home) -> tuple[str, int, str]:
    words = ["-c", 'test -z "$0" || echo $$ > "$0"; exec "$@"', at.procs, str(built("replay"))]
    words.append(str(SEQUENCES / f"{name}.tsv"))
    done = build.run("/bin/sh", *words, environment=at.environment, timeout=120)
    return done.stdout, done.returncode, done.stderr
