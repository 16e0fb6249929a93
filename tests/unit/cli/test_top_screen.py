"""The live screen of `alnair top`: its keys, and what it shows."""

import asyncio
import io
import os
from collections.abc import Callable

import pytest
from rich.console import Console

from alnair.cli.text.top_screen import Screen
from alnair.cli.text.use_tables import show, titles
from alnair.kube.errors import ConnectionFailed
from alnair.live.usage.use import ClusterUse, GpuUse, PodUse
from alnair.model.job_facts import CudaCalls, ModelFacts, Name


def _use(*notes: str) -> ClusterUse:
    pods = (
        PodUse("a", "one", "n1", "Job/x", 1.0, util=10.0),
        PodUse("a", "two", "n1", "Job/x", 1.0),
        PodUse("b", "three", "n1", "Pod/three", 0.5, util=80.0, idle_s=700),
    )
    gpus = (GpuUse("n1", 0, "GPU-0", "H200", 143771, pods=("a/one", "b/three")),)
    return ClusterUse(1, (), gpus, pods, (), notes)


def _text(screen: Screen) -> str:
    console = Console(file=io.StringIO(), width=120)
    console.print(screen.shown())
    return console.file.getvalue()  # type: ignore[attr-defined, no-any-return]


def _screen(keyboard: int = -1) -> Screen:
    return Screen("pods", 0.01, keyboard, Console(file=io.StringIO(), width=120, height=30))


async def _shown_after(keys: str, *answers: ClusterUse | Exception) -> str:
    """Run it on a terminal until all answers were given and the keys typed, then quit."""
    left, looked = list(answers), 0
    person, terminal = os.openpty()
    screen = _screen(terminal)

    async def look() -> ClusterUse:
        nonlocal looked
        looked += 1
        answer = left.pop(0) if len(left) > 1 else left[0]
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def until(holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not holds():  # noqa: ASYNC110
                await asyncio.sleep(0.01)

    pressed: list[str] = []
    press = screen.press

    def note(key: str) -> None:
        press(key)
        pressed.append(key)

    screen.press = note  # type: ignore[method-assign]
    running = asyncio.create_task(screen.run(look))
    try:
        await until(lambda: looked > len(answers))
        os.write(person, keys.encode())
        await until(lambda: len(pressed) == len(keys))
        text = _text(screen)
        os.write(person, b"q")
        await asyncio.wait_for(running, 20)
    finally:
        os.close(person)
        os.close(terminal)
    return text


async def test_keys_choose_the_view() -> None:
    assert "GPU" in await _shown_after("g", _use())
    assert "no node says" in await _shown_after("n", _use())


async def test_sorted_by_a_number_the_largest_is_first_and_the_unknown_last() -> None:
    text = await _shown_after("sssss", _use())  # the fifth column: busy
    assert text.index("three") < text.index("one") < text.index("two")
    text = await _shown_after("sssssr", _use())
    assert text.index("one") < text.index("three") < text.index("two")


async def test_a_look_that_fails_is_said_and_the_next_one_shown() -> None:
    refused = ConnectionFailed("refused")
    assert "cannot be read: refused" in await _shown_after("", refused)
    assert "cannot be read" not in await _shown_after("", refused, _use())


async def test_what_could_not_be_asked_is_noted() -> None:
    assert "note: no rights" in await _shown_after("", _use("no rights"))


@pytest.mark.parametrize("key", ["q", "\x1b", "\x03"])
async def test_these_keys_end_it(key: str) -> None:
    screen = _screen()
    screen.press(key)
    assert screen.is_over


def test_one_look_is_printed_as_a_table() -> None:
    console = Console(file=io.StringIO(), width=120)
    show(_use("no rights"), "pods", console)
    text = console.file.getvalue()  # type: ignore[attr-defined]
    assert "80.0 %" in text
    assert "12m" in text
    assert text.splitlines()[-1].rstrip() == "note: no rights"


def test_the_work_of_pods_is_a_view_of_its_own() -> None:
    screen = _screen()
    model = ModelFacts(Name("org/tiny", "option --model"))
    calls = CudaCalls(1500.0, {"launch": 0.9, "h2d": 0.1}, "the slice's library")
    pods = (
        PodUse("a", "one", "n1", "Job/x", 1.0, type="training", model=model, cuda=calls),
        PodUse("a", "two", "n1", "Job/x", 1.0),
    )
    screen._use = ClusterUse(1, (), (), pods, ())
    screen.press("w")
    for _ in range(len(titles("work"))):  # by each of its columns
        screen.press("s")
        text = _text(screen)
        assert "org/tiny" in text
        assert "launch 90%, h2d 10%" in text
        assert "unknown" in text
