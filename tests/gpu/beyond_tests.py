"""Test 17: memory that nobody was granted is lent, and no owner finds it missing."""

import contextlib
import time

from gpu.bench import Bench
from gpu.machine import MIB
from gpu.programs import Program
from gpu.report import Row, judged, skipped

SLICE = 2048 * MIB
BEYOND = 4096 * MIB
#: Seconds in which the agent has looked at the GPU and knows what is free.
PATIENCE = 5


def loans(bench: Bench) -> list[Row]:
    """A borrower beside an owner of half the GPU, and then one who comes for what is lent."""
    if (agent := bench.tenants.agent) is None:
        return [skipped(17, "loans", "only a vGPU server lends (needs root)")]
    total = int(bench.constants["total"])
    half = total // 2 // (2 * MIB) * 2 * MIB
    with (
        bench.tenants.one(memory=half) as owner,
        bench.tenants.one(memory=SLICE, borrows=True) as borrower,
    ):
        end = time.monotonic() + PATIENCE
        result, lent = 2, None
        while result and time.monotonic() < end:
            lent = Program("memory", "hold", (SLICE + BEYOND) // MIB, at=borrower.home)
            result = lent.line()["result"]
            if result:
                lent.go()
                lent.end()
        assert lent is not None
        rows = [judged(17, "an allocation beyond the slice", "CUresult 0", f"{result}", not result)]
        size = (half - bench.context - 64 * MIB) // MIB
        mine = Program("memory", "hold", size, at=owner.home)
        found = mine.line()["result"]
        what = "an owner's within its slice, beside"
        rows.append(judged(17, what, "CUresult 0", f"{found}", not found))
        words = ["--gpu", f"GPU-{bench.machine.uuid()}", "--cgroup", "/alnair-nobody"]
        words += ["--memory", str((total - half - SLICE - BEYOND // 2) // MIB)]
        said = ""
        try:
            agent.say("container", "add", "third", *words)
        except RuntimeError as error:
            said = str(error)
        waits = "come back" in said or bool(result)
        rows.append(judged(17, "who comes for what is lent", "waits", said[-60:] or "-", waits))
        for one in [mine] + ([] if result else [lent]):
            one.go()
            one.end()
        end = time.monotonic() + PATIENCE
        while said and time.monotonic() < end:
            time.sleep(0.2)
            with contextlib.suppress(RuntimeError):
                agent.say("container", "add", "third", *words)
                said = ""
        with contextlib.suppress(RuntimeError):
            agent.say("container", "remove", "third")
    given = said or "yes"
    rows.append(judged(17, "and has it when it is given back", "within 5 s", given, not said))
    return rows
