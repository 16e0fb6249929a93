"""The order of arrival, and lists inflated beyond the capacity."""

import pytest

from alnair.traces import openb_files
from alnair.traces.arrivals import capacity, in_given_order, in_trace_order
from alnair.traces.files import TraceFileError
from alnair.traces.openb import TracePod

PODS = [TracePod("b", 1, 1, 1, 600), TracePod("a", 1, 1, 2, 1000), TracePod("c", 1, 1, 0, 0)]


def test_without_inflation_the_list_arrives_as_it_is() -> None:
    assert [a.name for a in in_trace_order(PODS)] == ["b", "a", "c"]


def test_inflation_appends_copies_with_names_of_their_own_up_to_the_demand() -> None:
    found = in_trace_order(PODS, tune=1.3, capacity=100_000, seed=7)
    assert [a.name for a in found[:3]] == ["b", "a", "c"]
    assert len({a.name for a in found}) == len(found)
    assert all(a.name == f"{a.pod.name}-tuned-{k}" for k, a in enumerate(found[3:]))
    demand = sum(a.pod.demand for a in found)
    assert 130_000 - 2_000 < demand <= 130_000 + 1_000


def test_the_same_seed_draws_the_same_pods_and_another_seed_others() -> None:
    first, again, other = (
        [a.name for a in in_trace_order(PODS, tune=1.3, capacity=100_000, seed=s)]
        for s in (7, 7, 8)
    )
    assert first == again != other


def test_a_list_beyond_the_demand_loses_pods_but_keeps_its_order() -> None:
    pods = [TracePod(f"p{i:02}", 1, 1, 1, 1000) for i in range(50)]
    names = [a.name for a in in_trace_order(pods, tune=0.5, capacity=60_000, seed=1)]
    assert len(names) == 30
    assert names == sorted(names)


def test_a_list_without_gpus_cannot_be_inflated_and_stays() -> None:
    assert len(in_trace_order([PODS[2]], tune=1.3, capacity=1000)) == 1


def test_openb_inflated_to_130_percent_has_as_many_pods_as_published() -> None:
    trace = openb_files.load()
    # 10,766 to 10,866 over the ten published seeds
    found = in_trace_order(trace.pods, tune=1.3, capacity=capacity(trace.nodes), seed=42)
    assert 10_600 < len(found) < 11_000


def test_the_published_order_is_followed_and_its_copies_are_told_apart() -> None:
    found = in_given_order(PODS, ["c", "a", "a-tuned-0", "b-tuned-1"], "order.txt")
    assert [(a.name, a.pod.name) for a in found] == [
        ("c", "c"),
        ("a", "a"),
        ("a-tuned-0", "a"),
        ("b-tuned-1", "b"),
    ]


@pytest.mark.parametrize(
    ("order", "said"),
    [
        (["a", "x"], "order.txt, line 2: 'x' is not in the pod list"),
        (["a", "a"], "order.txt, line 2: 'a' is there twice"),
    ],
)
def test_an_order_that_does_not_fit_the_list_is_refused(order: list[str], said: str) -> None:
    with pytest.raises(TraceFileError, match=said):
        in_given_order(PODS, order, "order.txt")
