"""Tests 17 and 18: memory that nobody was granted is lent, and a container rests in the host's."""

import contextlib
import json
import time

from gpu.bench import Bench
from gpu.machine import MIB
from gpu.programs import Program
from gpu.report import Row, judged, skipped
from gpu.tenants import Agent

SLICE = 2048 * MIB
BEYOND = 4096 * MIB
#: Seconds in which the agent has looked at the GPU and knows what is free.
PATIENCE = 5
#: Seconds that it may take to suspend or resume.
SUSPENDING = 30


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


def suspension(bench: Bench) -> list[Row]:
    """A container with 4 GiB is suspended and resumed, and its program goes on."""
    if (agent := bench.tenants.agent) is None:
        return [skipped(18, "suspending", "only a vGPU server does it (needs root)")]
    with bench.tenants.one(memory=3 * SLICE) as it:
        program = Program("memory", "hold", 2 * SLICE // MIB, at=it.home)
        program.line()
        full = bench.machine.used(it.tag, [program.pid])
        took, state = _until(agent, it.tag, "suspend", "suspended")
        left = bench.machine.used(it.tag, [program.pid])
        back, resumed = _until(agent, it.tag, "resume", "registered")
        again = bench.machine.used(it.tag, [program.pid])
        program.go()
        code, said = program.end()
    if "older than release 570" in state:
        return [skipped(18, "suspending", state)]
    return [
        judged(18, f"4 GiB suspended in {took:.1f} s", "suspended", state, state == "suspended"),
        judged(18, "held of the GPU then", "0 B", f"{left} B (of {full} B)", not left and full > 0),
        judged(18, f"and resumed in {back:.1f} s", "as before", f"{again} B", again == full),
        judged(18, "its program", "exit 0", f"exit {code} {said}".strip(), not code + len(resumed)),
    ]


def _until(agent: Agent, name: str, verb: str, state: str) -> tuple[float, str]:
    """Seconds until a container is so, and what it is; for resuming "" if all is well."""
    began = time.monotonic()
    agent.say("container", verb, name)
    shown = ""
    while time.monotonic() - began < SUSPENDING and shown != state:
        time.sleep(0.1)
        listed = json.loads(agent.say("container", "list", "--json"))
        shown = next(one["state"] for one in listed if one["assignment"]["name"] == name)
        if (problem := f"container {name} cannot be") in (log := agent.log()):
            return time.monotonic() - began, log.rpartition(problem)[2].splitlines()[0]
    return time.monotonic() - began, "" if verb == "resume" and shown == state else shown
