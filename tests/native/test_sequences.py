"""What PyTorch and TensorFlow asked of the driver, replayed: limits change nothing but refusals."""

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from native import build
from native.container import Container
from native.fake import Fake

FOLDER = Path(__file__).parent / "sequences"
FIXTURES = sorted(path.stem for path in FOLDER.glob("*.tsv"))
REFUSED = [name for name in FIXTURES if name.endswith("-refused")]
PLAIN = [name for name in FIXTURES if name not in REFUSED]
GIB = 1 << 30
#: The GPU on which the refused ones were recorded had this much.
SMALL = 4 * GIB
#: Of the fake H200.
CONTEXT = 522 << 20

Make = Callable[..., Container]


class Replay(NamedTuple):
    calls: int
    takings: int
    refused: int
    mismatches: int
    taken: int


def replayed(name: str, *words: str, environment: dict[str, str]) -> Replay:
    program, fixture = build.client("replay"), FOLDER / f"{name}.tsv"
    done = build.run(program, fixture, *words, environment=environment)
    assert done.returncode == 0, done.stderr
    found = Replay(*map(int, done.stdout.split()))
    assert not found.mismatches, done.stderr
    return found


def test_there_are_sequences_of_both_frameworks_and_all_their_allocators() -> None:
    assert {name.split("-")[0] for name in FIXTURES} >= {"pytorch", "tensorflow"}
    assert {name.removesuffix("-refused").split("-", 1)[1] for name in FIXTURES} >= {
        *("default", "expandable", "malloc-async", "graph", "bfc", "grow")
    }


@pytest.mark.parametrize("name", PLAIN)
def test_results_are_the_same_without_the_library_and_with_a_limit_that_does_not_bind(
    name: str, fake: Fake, container: Make
) -> None:
    without = replayed(name, environment=fake.environment("without", cuda=12040))
    limited = container(memory_limit=fake.total(), compute_percent=90, context_bytes=CONTEXT)
    environment = {**fake.environment("a", cuda=12040), **limited.environment()}
    assert replayed(name, environment=environment) == without
    assert without.calls > 50
    assert without.takings > 1


@pytest.mark.parametrize("name", PLAIN)
def test_a_refusal_at_every_taking_of_memory_takes_nothing_and_can_be_retried(
    name: str, fake: Fake, container: Make
) -> None:
    limited = container(memory_limit=fake.total(), context_bytes=CONTEXT)
    environment = {**fake.environment("a", cuda=12040), **limited.environment()}
    found = replayed(name, "refuse", environment=environment)
    assert found.taken == 0
    assert found.refused > 1
    # What a pool holds already, and the room of a block that others share, cannot be refused.
    if "malloc-async" not in name:
        assert found.refused > found.takings // 2


@pytest.mark.parametrize("name", REFUSED)
def test_a_limit_refuses_where_a_gpu_of_that_size_did(
    name: str, fake: Fake, container: Make
) -> None:
    limited = container(memory_limit=SMALL, context_bytes=CONTEXT)
    fake.watch(SMALL)
    environment = {**fake.environment("a", cuda=12040), **limited.environment()}
    replayed(name, environment=environment)
    assert fake.over() == (0, 0)


@pytest.mark.parametrize("how", ["alloc", "vmm", "async"])
def test_a_loop_that_frees_and_retries_goes_on_fifty_times_of_fifty(
    how: str, fake: Fake, container: Make
) -> None:
    limited = container(memory_limit=8 * GIB, context_bytes=CONTEXT)
    fake.watch(8 * GIB)
    environment = {**fake.environment("a"), **limited.environment()}
    program = build.client("goes_on", "-l:libcuda.so.1")
    cycles, least, most = map(int, build.checked(program, how, 50, environment=environment).split())
    assert cycles == 50
    assert least == most == (8 * GIB - CONTEXT) // (256 << 20)
    assert fake.over() == (0, 0)
