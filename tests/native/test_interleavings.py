"""One thread is stopped inside the driver while another goes on: who is charged what afterwards."""

import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from native import build
from native.container import Container

#: What scripted_driver.c says of its one GPU.
GPU = uuid.UUID(bytes=bytes([7] * 16))
MIB = 1 << 20

Interleave = Callable[[str], list[str]]


@pytest.fixture
def interleave(tmp_path: Path) -> Interleave:
    """Runs a case of clients/interleave.c in a container of 256 MiB; the lines it prints."""
    driver = tmp_path / "libcuda.so.1"
    flags = ["-shared", "-fPIC", "-Wl,-soname,libcuda.so.1", "-I", str(build.cuda_headers())]
    source = str(build.CLIENTS / "scripted_driver.c")
    build.checked("cc", *flags, source, "-o", str(driver), environment={})

    def run(case: str) -> list[str]:
        program = build.client("interleave", "-rdynamic", "-l:libcuda.so.1")
        with Container(GPU, memory_limit=256 * MIB, context_bytes=MIB) as container:
            environment = {**container.environment(), "LD_LIBRARY_PATH": str(tmp_path)}
            return build.checked(program, case, environment=environment).splitlines()

    return run


@pytest.mark.parametrize("case", ["remap", "remap-same-handle"])
def test_memory_mapped_where_other_memory_is_being_unmapped_keeps_its_own_charge(
    interleave: Interleave, case: str
) -> None:
    assert interleave(case) == ["mapped 8", "remapped 2", "released 2", "unmapped 0"]


def test_of_mappings_that_one_call_takes_away_none_is_taken_that_came_meanwhile(
    interleave: Interleave,
) -> None:
    assert interleave("remap-behind") == ["mapped 8", "remapped 2", "unmapped 0"]


def test_a_mapping_that_the_driver_refuses_to_take_away_stays_charged(
    interleave: Interleave,
) -> None:
    assert interleave("refuse-unmap") == ["refused 8"]


def test_while_memory_leaves_an_array_other_threads_map_theirs(interleave: Interleave) -> None:
    assert interleave("map-while-unbinding") == ["bound 8", "unbound 2"]


def test_a_library_that_gets_the_handle_of_one_being_unloaded_keeps_its_charge(
    interleave: Interleave,
) -> None:
    assert interleave("reload") == ["loaded 1", "reloaded 3", "unloaded 0"]


def test_while_a_context_is_being_made_other_threads_make_and_end_theirs(
    interleave: Interleave,
) -> None:
    assert interleave("create-while-creating") == ["created 1", "ended 0"]


def test_a_context_that_gets_the_handle_of_one_being_ended_keeps_its_charges(
    interleave: Interleave,
) -> None:
    assert interleave("create-while-destroying") == ["created 9", "again 3", "ended 0"]


def test_a_context_that_the_driver_refuses_to_end_stays_charged(interleave: Interleave) -> None:
    assert interleave("refuse-destroy") == ["refused 9", "ended 0"]


def test_while_a_contexts_limit_is_set_other_threads_set_those_of_theirs(
    interleave: Interleave,
) -> None:
    assert interleave("limit-while-limiting") == ["set 0"]


def test_while_a_thread_asks_whether_memory_is_free_others_free_and_allocate(
    interleave: Interleave,
) -> None:
    """What it asks about stays charged until it has its answer."""
    assert interleave("free-while-asking") == ["allocated 12", "freed 4", "both 2"]


def test_a_pool_whose_last_memory_is_freed_while_it_is_destroyed_is_credited_once(
    interleave: Interleave,
) -> None:
    assert interleave("free-while-destroyed") == ["two 64", "one 32"]


def test_a_pool_destroyed_while_an_allocation_from_it_fails_is_credited(
    interleave: Interleave,
) -> None:
    assert interleave("destroy-while-allocating") == ["stock 32", "destroyed 0"]


def test_what_a_pool_gave_back_while_it_grew_lets_no_allocation_pass_at_the_limit(
    interleave: Interleave,
) -> None:
    seen = ["stock 32", "grown 32", "refused 256", "reserved at most 32"]
    assert interleave("grow-while-trimmed") == seen


@pytest.mark.parametrize("case", ["undo", "undo-destroyed"])
def test_while_an_allocation_is_undone_other_threads_use_their_pools(
    interleave: Interleave, case: str
) -> None:
    assert interleave(case) == ["refused 0"]
