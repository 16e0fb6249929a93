"""What tables of pairs say of two neighbours."""

import pytest

from alnair.model.pair_rates import (
    LIMITED,
    MPS,
    TIME_SLICED,
    PairRates,
    Pairs,
    mode_of,
    seen_kind,
    spelling,
    table_name,
)
from alnair.node.pairing.suite import KINDS
from kit import make

TYPES = ("training", "inference", "batch", "idle")

PLAIN = PairRates(("a", "b"), ((0.5, 0.8), (0.6, 0.0)))
WITH_MPS = PairRates(("a", "b"), ((0.0, 0.95), (0.9, 0.0)))


def test_each_of_a_pair_has_its_own_speed_and_the_slow_down_is_of_both() -> None:
    found = Pairs({"K80": PLAIN}).measured("K80", TIME_SLICED, "b", "a")
    assert found == (0.6, 0.8, "K80")
    assert found.slowdown == pytest.approx(1 / 0.7)


def test_a_mode_has_its_own_table_and_else_that_of_taking_turns() -> None:
    pairs = Pairs({"K80": PLAIN, "K80/mps": WITH_MPS})
    assert pairs.measured("K80", MPS, "a", "b") == (0.95, 0.9, "K80/mps")
    assert pairs.measured("K80", MPS, "a", "a") == (0.5, 0.5, "K80")
    assert pairs.measured("K80", LIMITED, "a", "b") == (0.8, 0.6, "K80")
    assert table_name("K80", MPS) == "K80/mps"
    assert table_name("K80", TIME_SLICED) == "K80"


@pytest.mark.parametrize("kinds", [("b", "b"), ("a", "c"), ("", "a"), ("a", "")])
def test_what_was_not_measured_or_does_not_fit_is_nothing(kinds: tuple[str, str]) -> None:
    assert Pairs({"K80": PLAIN}).measured("K80", TIME_SLICED, *kinds) is None


def test_another_gpu_has_no_figures_unless_one_stands_for_all() -> None:
    assert Pairs({"K80": PLAIN}).measured("A100", TIME_SLICED, "a", "b") is None
    assert Pairs({"K80": PLAIN}, "K80").measured("A100", TIME_SLICED, "a", "b") is not None
    assert Pairs({"K80/mps": WITH_MPS}).has("Tesla K80")
    assert not Pairs({"K80": PLAIN}).has("K8")


def test_one_gpu_is_the_same_however_it_is_spelt() -> None:
    names = ("NVIDIA-TITAN-X-(Pascal)", "TITAN X (Pascal)", "titan_x pascal")
    assert len({spelling(name) for name in names}) == 1
    assert spelling("Tesla-K80/mps") == "k80/mps"


def test_what_the_profiler_sees_is_like_a_workload_of_the_suite() -> None:
    assert seen_kind("memory-bound", "training") == "memory-bound"
    assert seen_kind("GPU-bound", "training") == "training"
    assert seen_kind(None, "inference") == "inference"
    assert seen_kind("idle", None) == seen_kind(None, "batch") == ""
    told = {seen_kind(b, t) for b in ("memory-bound", "input-bound", "") for t in TYPES}
    assert told - {""} <= set(KINDS)


def test_how_a_pod_shares_its_gpu_is_told_by_what_it_asks_for() -> None:
    def mode(**asked: int) -> str:
        demand = make.spec(slice_mib=100, **asked).gpu
        assert demand is not None
        return mode_of(demand)

    assert mode() == TIME_SLICED
    assert mode(compute=50) == LIMITED
    assert mode(compute=100) == TIME_SLICED
    assert mode(compute=50, soft=True) == TIME_SLICED
