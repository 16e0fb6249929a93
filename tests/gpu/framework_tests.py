"""Tests 10 and 11: PyTorch trains within its limit, and goes on after it ran out of memory."""

import importlib.util
import json
from typing import Any

from gpu.bench import Bench
from gpu.machine import MIB
from gpu.programs import script
from gpu.report import Row, judged, skipped, timed
from gpu.tenants import Home

ALLOCATORS = ("", "expandable_segments:True", "backend:cudaMallocAsync")
LIMIT = 20000 * MIB
CYCLES = 50


def _torch(name: str, *arguments: object, at: Home, allocator: str) -> dict[str, Any]:
    more = {"PYTORCH_CUDA_ALLOC_CONF": allocator} if allocator else {}
    done = script(name, *arguments, at=Home({**at.environment, **more}, at.procs))
    if done.returncode:
        return {"failed": done.stderr.strip()[-200:]}
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _missing() -> str:
    return "" if importlib.util.find_spec("torch") else "PyTorch with CUDA is not installed"


def training(bench: Bench) -> list[Row]:
    """Test 10: a small GPT, three allocators: same losses with and without, within the limit."""
    if why := _missing():
        return [skipped(10, "PyTorch training", why)]
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
    if why := _missing():
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
