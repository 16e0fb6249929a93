"""Calls are counted by class, with bytes; captured launches are neither counted nor charged."""

import csv
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from native import build
from native.container import CLASSES, Container
from native.fake import Fake

THREADS, COPIES, GRAPHS = 2, 10, 3


@pytest.mark.parametrize("percent", [0, 1])
def test_calls_of_threads_that_ended_are_all_counted(
    fake: Fake, container: Callable[..., Container], percent: int
) -> None:
    charged = counted(fake, container(compute_percent=percent))
    if not percent:
        assert charged == 0
        return
    # Events cost some, and credit that a thread did not use is given back at its end. Where this
    # machine stood still, the fake GPU took longer: of three runs one went on undisturbed.
    tries = [charged, *(counted(fake, container(compute_percent=percent)) for _ in range(2))]
    assert 0.5 * 872_000 <= min(tries) <= 4 * 872_000


def counted(fake: Fake, its: Container) -> int:
    """What a run of the program is charged (ns); its calls are held to what it does."""
    program = build.client("call_classes", "-l:libcuda.so.1")
    with build.start(program, environment=fake.environment() | its.environment()) as process:
        assert process.stdout
        assert process.stdin
        assert process.stdout.readline() == "done\n"
        assert its.calls("launch")[0] == THREADS * (101 + 5)
        assert its.calls("graph")[0] == THREADS * GRAPHS
        assert its.total("launches") == THREADS * (101 + 5 + GRAPHS)
        assert its.calls("event")[0] == THREADS * 4 + 1  # made, recorded, asked, ended; a stream
        assert its.calls("module")[0] == 1
        assert [slot.classes for slot in its.slots()] == [len(CLASSES)]
        for name, size in (("h2d", 1000), ("d2d", 200), ("d2h", 30), ("memset", 400)):
            assert its.calls(name)[:2] == (THREADS * COPIES, THREADS * COPIES * size)
        assert its.calls("sync")[0] == THREADS
        assert its.total("waiting") == 0
        charged = its.total("charged_ns")
        process.stdin.close()
        assert process.wait(timeout=20) == 0
    return charged


@pytest.mark.parametrize(
    "mode",
    [
        pytest.param({}, id="as ever"),
        # A thread that stands still in its first launch looks the same, on a busy machine.
        pytest.param({"CUDA_LAUNCH_BLOCKING": "1"}, id="launches wait for the kernel"),
    ],
)
def test_work_is_charged_to_the_gpu_of_its_stream(mode: dict[str, str]) -> None:
    program = build.client("foreign_gpu", "-l:libcuda.so.1")
    with Fake(gpus=2) as fake, Container(fake.uuid(0), fake.uuid(1), compute_percent=90) as its:
        environment = fake.environment() | its.environment() | mode
        with build.start(program, environment=environment) as process:
            assert process.stdout
            assert process.stdin
            assert process.stdout.readline() == "done\n"
            charged = [sum(slot.device[row].charged_ns for slot in its.slots()) for row in (0, 1)]
            process.stdin.close()
            assert process.wait(timeout=20) == 0
    assert charged[0] == 0
    assert charged[1] >= 39e6


def hooks() -> list[str]:
    """Names of the hooked functions that launch, copy, fill, wait and capture."""
    with (build.ROOT / "native" / "vgpu" / "symbols.tsv").open() as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    begins = "cuLaunch", "cuGraphLaunch", "cuMemcpy", "cuMemset", "cuMemBatchDecompress"
    waits = "Synchronize", "StreamQuery", "EventQuery", "Capture"
    return [
        row["name"]
        for row in rows
        if row["class"] == "hook"
        and (row["name"].startswith(begins) or any(word in row["name"] for word in waits))
    ]


def test_every_hook_takes_zeros_to_the_driver_and_gives_its_error_back(
    fake: Fake, container: Callable[..., Container]
) -> None:
    names = hooks()
    assert len(names) > 140
    script = str(Path(__file__).parent / "clients" / "call_all.py")
    answers: list[str] = []
    for its in (None, container(compute_percent=50)):
        environment = fake.environment() | (its.environment() if its else {})
        with build.start(sys.executable, script, *names, environment=environment) as process:
            assert process.stdout
            assert process.stdin
            lines = iter(process.stdout.readline, "")
            answers.append("".join(iter(lambda lines=lines: next(lines), "done\n")))
            if its:
                assert its.total("charged_ns") < 500_000  # what is left of the thread's credit
                assert min(its.calls(name)[0] for name in ("h2d", "d2h", "d2d", "peer")) > 5
                assert its.calls("memset")[0] == 30
            process.stdin.close()
            assert process.wait(timeout=20) == 0
    assert answers[0] == answers[1]
    assert answers[0].count("\n") == len(names)


def test_a_context_that_is_retained_and_released_again_and_again_collects_no_events(
    fake: Fake, container: Callable[..., Container]
) -> None:
    rounds, slots = 300, 256
    program = build.client("retains", "-l:libcuda.so.1")
    environment = fake.environment() | container(compute_percent=90).environment()
    build.checked(program, rounds, environment=environment)
    made, ended = fake.calls("cuEventCreate"), fake.calls("cuEventDestroy_v2")
    # Most launches of a long kernel are timed, by two events each.
    assert fake.calls("cuEventRecord") >= rounds
    # It lives on while others retain it, and later samples use its events: three of each slot.
    assert 3 <= made - ended <= 3 * slots < 3 * rounds
