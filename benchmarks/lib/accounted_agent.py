"""`alnair agent`, which also says which part of it takes how much processor time.

    python -c "from lib.accounted_agent import main; main()" FILE agent ...

At SIGUSR1 it writes FILE, as JSON: the seconds of processor time and the calls of each part so far,
those of the process, and each cycle of the profiler. A part is a handle of the event loop, by its
task or callback, or a call in a thread of its own or of a pool, by its function. What is in none is
the loop itself, and the beginning of threads.
"""

import asyncio.events
import concurrent.futures.thread
import json
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from alnair.node import own_thread
from lib.waiting import waited_s

#: Name → seconds, calls.
PARTS: dict[str, list[float]] = {}
#: Wall seconds of each cycle, and how many of them its threads waited for a processor.
CYCLES: list[tuple[float, float]] = []


def main() -> None:
    file = Path(sys.argv.pop(1))
    account()
    signal.signal(signal.SIGUSR1, lambda *_: write(file))

    from alnair.cli.main import main as run
    from alnair.processes.agent.profiler.pod_profiler import PodProfiler

    of_cycles(PodProfiler)
    run()


def add(name: str, seconds: float) -> None:
    part = PARTS.setdefault(name, [0.0, 0])
    part[0] += seconds
    part[1] += 1


def timed(name: str, work: Callable[..., Any]) -> Callable[..., Any]:
    def run(*arguments: Any, **named: Any) -> Any:
        began = time.thread_time()
        try:
            return work(*arguments, **named)
        finally:
            add(name, time.thread_time() - began)

    return run


def account() -> None:
    """Measure all handles and threads from now on."""
    run_handle = asyncio.events.Handle._run  # noqa: SLF001 (there is no other place)
    run_item = concurrent.futures.thread._WorkItem.run  # noqa: SLF001
    in_own_thread = own_thread.in_own_thread

    def handle(self: asyncio.events.Handle) -> None:
        name = name_of(self._callback)  # type: ignore[attr-defined]
        timed(name, run_handle)(self)

    def item(self: Any) -> None:
        inner = getattr(self.fn, "args", None) or self.args or (self.fn,)
        timed(f"pool {name_of(inner[0])}", run_item)(self)

    def own(work: Callable[..., Any], *arguments: Any) -> Any:
        return in_own_thread(timed(f"thread {name_of(work)}", work), *arguments)

    asyncio.events.Handle._run = handle  # type: ignore[method-assign]  # noqa: SLF001
    concurrent.futures.thread._WorkItem.run = item  # type: ignore[method-assign]  # noqa: SLF001
    own_thread.in_own_thread = own


def of_cycles(profiler: Any) -> None:
    """Keep the length of each cycle, and for how long it waited for a processor."""
    tick, read = profiler.tick, profiler._read  # noqa: SLF001
    waits: list[float] = []

    def reading(self: Any, look: Any) -> Any:
        before = waited_s()
        try:
            return read(self, look)
        finally:
            waits.append(waited_s() - before)

    async def cycle(self: Any) -> None:
        waits.clear()
        before, began = waited_s(), time.perf_counter()
        await tick(self)
        CYCLES.append((time.perf_counter() - began, waited_s() - before + sum(waits)))

    profiler._read, profiler.tick = reading, cycle  # noqa: SLF001


def name_of(work: Any) -> str:
    task = getattr(work, "__self__", None)
    if isinstance(task, asyncio.Task):
        work = task.get_coro()
    work = getattr(work, "func", work)
    return str(getattr(work, "__qualname__", type(work).__qualname__))


def write(file: Path) -> None:
    found = {"parts": PARTS, "process": time.process_time(), "cycles": CYCLES}
    file.with_suffix(".new").write_text(json.dumps(found))
    os.replace(file.with_suffix(".new"), file)  # noqa: PTH105 (in a signal's handler)
