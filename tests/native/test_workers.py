"""Forked workers that never touch CUDA: not charged, not registered, no harm to their parent."""

from collections.abc import Callable

import pytest

from native import build
from native.container import Container
from native.fake import Fake

WORKERS = 8


@pytest.mark.valgrind
def test_forked_data_loader_workers_cost_nothing(
    fake: Fake, container: Callable[..., Container]
) -> None:
    limited = container(memory_limit=8 << 30, context_bytes=522 << 20)
    environment = {**fake.environment("a"), **limited.environment()}
    program = build.client("workers", "-l:libcuda.so.1")
    with build.start(program, WORKERS, environment=environment) as process:
        assert process.stdout
        assert process.stdout.readline() == "working\n"
        assert len(limited.slots()) == 1
        assert limited.total("contexts") == 1
        assert limited.total("held") >= fake.used("a")
        process.communicate("\n")
    assert process.returncode == 0
    assert fake.used("a") == 0
