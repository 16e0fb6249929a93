"""What goes with a GPU: the mean where there is plenty, and what rich nodes can give where not."""

import itertools

import pytest

from alnair.scheduler.plugins.opportunity_cost.partners import Partner, Wanted, partner
from alnair.scheduler.plugins.opportunity_cost.supply import Beside

#: Half of the GPUs go with 8 cores, half with 24.
MIXED = Wanted(((50.0, 400.0), (50.0, 1200.0)))


def found(wanted: Wanted, *groups: tuple[int, int], elsewhere: int = 0) -> Partner:
    return partner(wanted, Beside(groups, elsewhere), 0.2, 0.05)


def test_of_what_there_is_plenty_the_mean_goes_with_a_gpu() -> None:
    assert found(MIXED, (10, 400), (90, 1800)) == Partner(16.0, 0.2)


@pytest.mark.parametrize(
    ("cores", "softness"),
    [(32, 0.2), (18, 0.2), (16.84, 0.1), (16.2, 0.05), (16, 0.05), (8, 0.05)],
)
def test_the_scarcer_it_is_the_sharper(cores: float, softness: float) -> None:
    assert found(MIXED, (100, round(100 * cores))).softness == pytest.approx(softness, abs=0.001)


def test_where_it_runs_out_gpus_of_rich_nodes_are_for_the_pods_with_the_most() -> None:
    assert found(MIXED, (50, 1500), (50, 100)) == Partner(24.0, 0.05)


def test_no_more_goes_with_a_gpu_than_rich_nodes_keep_beside_pods_without_gpus() -> None:
    apart = Wanted(MIXED.beside, 600.0)
    kept = found(apart, (50, 1500), (50, 100)).per_gpu
    assert kept == pytest.approx((1500 - 600 * 1600 / 2200) / 50)


def test_pods_without_gpus_that_take_of_all_nodes_leave_all_the_same() -> None:
    apart = Wanted(MIXED.beside, 3200.0)
    assert found(apart, (50, 1500), (50, 900)).per_gpu == pytest.approx(16 * 2400 / 4800)


def test_nodes_without_gpus_take_the_pods_without() -> None:
    apart = Wanted(MIXED.beside, 3200.0)
    groups = (100, 4000)
    assert found(apart, groups, elsewhere=3200) == found(MIXED, groups)
    assert found(apart, groups, elsewhere=9000) == found(MIXED, groups)
    assert found(apart, groups).softness < found(MIXED, groups).softness


def test_between_plenty_and_none_nothing_jumps() -> None:
    amounts = range(1400, 2400, 5)
    partners = [found(MIXED, (20, amount // 2), (80, amount // 2)) for amount in amounts]
    for one, other in itertools.pairwise(partners):
        assert other.softness - one.softness == pytest.approx(0, abs=0.01)
        assert other.per_gpu / one.per_gpu == pytest.approx(1, abs=0.05)


@pytest.mark.parametrize(
    ("wanted", "groups", "per_gpu"),
    [
        pytest.param(Wanted(), (), 0.0, id="nothing is known"),
        pytest.param(Wanted((), 90.0), ((10, 80),), 8.0, id="no pod has GPUs: what nodes have"),
        pytest.param(Wanted(((0.0, 9.0),)), ((10, 80),), 8.0, id="GPUs that no node has"),
        pytest.param(MIXED, (), 16.0, id="no node has GPUs"),
        pytest.param(Wanted(((5.0, 0.0),)), ((10, 80),), 0.0, id="nobody asks for it"),
        pytest.param(Wanted(((0.0, 3.0), (1.0, 8.0))), ((1, 4),), 4.0, id="some take no GPU"),
    ],
)
def test_odd_mixes_have_partners_too(
    wanted: Wanted, groups: tuple[tuple[int, int], ...], per_gpu: float
) -> None:
    assert found(wanted, *groups).per_gpu == pytest.approx(per_gpu)


def test_one_softness_for_all_leaves_the_mean() -> None:
    scarce = Beside(((50, 750), (50, 100)))
    assert partner(MIXED, scarce, 0.2, 0.2) == Partner(16.0, 0.2)
