"""How much comes in: in all, and in an epoch."""

import pytest

from alnair.model.job_facts import Figure, InputPlace
from alnair.profiler.job_facts.inputs import Incoming, InputReads

MIB = 1 << 20
PLACE = InputPlace("nfs", "server:/data", "volume data at /data")


def after(*looks: tuple[int | None, int | None, float | None]) -> InputReads:
    reads = InputReads()
    for disk, network, epoch in looks:
        reads.take(
            Incoming(
                None if disk is None else disk * MIB,
                None if network is None else network * MIB,
                epoch,
            )
        )
    return reads


def test_an_epoch_is_the_most_that_came_in_during_one() -> None:
    reads = after((100, 1, 0), (600, 2, 1), (1200, 3, 2), (1210, 4, 3))
    found = reads.facts((PLACE,))
    assert found is not None
    assert found.places == (PLACE,)
    assert found.read_mib == Figure(1200.0, "bytes read from disks")
    assert found.epoch_mib == Figure(600.0, "bytes read from disks")


def test_several_epochs_between_looks_are_shared_out() -> None:
    found = after((0, 0, 1.5), (0, 900, 4.5)).facts(())
    assert found is not None
    assert found.epoch_mib == Figure(300.0, "bytes received by network")


def test_counters_and_epochs_that_begin_again_count_nothing_twice() -> None:
    found = after((100, None, 4), (40, None, 0), (90, None, 1)).facts(())
    assert found is not None
    assert found.read_mib == Figure(190.0, "bytes read from disks")
    assert found.epoch_mib == Figure(50.0, "bytes read from disks")


@pytest.mark.parametrize("looks", [[], [(None, None, None)], [(0, 0, 1.0), (0, 0, 2.0)]])
def test_what_nobody_counts_is_unknown(
    looks: list[tuple[int | None, int | None, float | None]],
) -> None:
    assert after(*looks).facts(()) is None
