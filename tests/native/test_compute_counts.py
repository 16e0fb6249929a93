"""Calls are counted by class, with bytes; captured launches are neither counted nor charged."""

from collections.abc import Callable

import pytest

from native import build
from native.container import Container
from native.fake import Fake

THREADS, COPIES = 2, 10


@pytest.mark.parametrize("percent", [0, 1])
def test_calls_of_threads_that_ended_are_all_counted(
    fake: Fake, container: Callable[..., Container], percent: int
) -> None:
    its = container(compute_percent=percent)
    program = build.client("call_classes", "-l:libcuda.so.1")
    with build.start(program, environment=fake.environment() | its.environment()) as process:
        assert process.stdout
        assert process.stdin
        assert process.stdout.readline() == "done\n"
        assert its.calls("launch")[0] == its.total("launches") == THREADS * (101 + 5)
        for name, size in (("h2d", 1000), ("d2d", 200), ("d2h", 30), ("memset", 400)):
            assert its.calls(name)[:2] == (THREADS * COPIES, THREADS * COPIES * size)
        assert its.calls("sync")[0] == THREADS
        assert its.total("waiting") == 0
        charged = its.total("charged_ns")
        # Events cost some, and credit that a thread did not use is given back at its end.
        assert 0.5 * 848_000 <= charged <= 4 * 848_000 if percent else charged == 0
        process.stdin.close()
        assert process.wait(timeout=20) == 0
