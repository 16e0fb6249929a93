"""The placement benchmark: the protocol, on clusters small enough to see, and exactness."""

from collections.abc import Sequence
from itertools import count

import pytest

from alnair.scheduler.profiles import profiles
from alnair.scheduler.published.fragmentation import fragmentation, target_workload
from alnair.scheduler.published.profiles import POLICIES, Policy, published
from alnair.sim.placement import benchmark
from alnair.sim.placement.benchmark import Run
from alnair.sim.placement.gpu_ledger import NodeLedger, OverfullError
from alnair.traces.arrivals import in_trace_order, nodes_in_given_order, nodes_in_seeded_order
from alnair.traces.files import TraceFileError
from alnair.traces.openb import TraceNode, TracePod

TWO = (TraceNode("a", 8000, 4096, 2, "T4"), TraceNode("b", 8000, 4096, 2, "G2"))


def share(name: str, milli: int, **changes: int) -> TracePod:
    return TracePod(name, changes.get("cpu", 1000), changes.get("memory", 1), 1, milli)


def place(
    pods: Sequence[TracePod],
    nodes: Sequence[TraceNode] = TWO,
    policy: Policy = "firstfit",
    order: Sequence[str] = (),
) -> Run:
    ticks = count()
    workload = target_workload(pods)
    return benchmark.run(
        nodes,
        in_trace_order(pods),
        published(policy, workload, lambda most: 0),
        workload,
        order=order or [n.name for n in nodes],
        timer=lambda: float(next(ticks)),
    )


def where(run: Run) -> list[str]:
    return [f"{d.node}{''.join(map(str, d.gpus))}" for d in run.decisions]


def test_every_thousandth_of_a_gpu_counts() -> None:
    pods = [share("p0", 333), share("p1", 334), share("p2", 333), share("p3", 1), share("p4", 999)]
    assert where(place(pods)) == ["a0", "a0", "a0", "a1", "a1"]


def test_a_pod_that_finds_no_node_is_dropped_and_never_comes_back() -> None:
    pods = [
        TracePod("all", 1000, 1, 2, 1000, ("T4",), "T4"),
        TracePod("none", 1000, 1, 1, 1000, ("T4",), "T4"),
        TracePod("huge", 10**6, 1, 1, 1000),
        share("small", 100),
    ]
    run = place(pods)
    assert where(run) == ["a01", "", "", "b0"]
    assert run.failed == 2


@pytest.mark.parametrize("lacking", [{"cpu": 8001}, {"memory": 4097}], ids=["cores", "memory"])
def test_cores_and_memory_bind_to_the_last_unit(lacking: dict[str, int]) -> None:
    fits = {what: amount - 1 for what, amount in lacking.items()}
    assert where(place([share("p", 100, **lacking), share("q", 100, **fits)])) == ["", "a0"]


def test_the_given_order_of_nodes_breaks_ties() -> None:
    pods = [share("p", 100), TracePod("cpu", 100, 0, 0, 0)]
    assert where(place(pods, order=["b", "a"])) == ["b0", "b"]


def test_a_share_goes_to_the_tightest_gpu_and_whole_ones_to_the_lowest() -> None:
    node = [TraceNode("n", 99_000, 99_999, 4, "T4")]
    pods = [
        TracePod("w", 1, 1, 1, 1000),
        share("p", 400),
        share("q", 700),
        share("r", 300),
        TracePod("v", 1, 1, 1, 1000),
    ]
    assert where(place(pods, node)) == ["n0", "n1", "n2", "n2", "n3"]


def test_values_are_means_over_the_arrivals_at_a_percentage() -> None:
    # 4,000 milli in all: 5 arrive at 1.25 and 2.5 %, which round to 1 and 3.
    run = place([share("p", 50), share("q", 50), TracePod("big", 1, 1, 8, 1000)])
    assert [(x.arrived_pct, x.arrivals, x.failed) for x in run.levels] == [
        (1, 1, 0),
        (3, 1, 0),
        (203, 1, 1),
    ]
    assert [x.unallocated_pct for x in run.levels] == [98.75, 97.5, 97.5]
    assert run.at(2) is None


def test_f_is_that_of_the_definition_after_every_arrival() -> None:
    pods = [share(f"p{i}", 70 * i + 50, cpu=500 * i) for i in range(9)]
    pods += [TracePod("whole", 100, 1, 2, 1000), TracePod("cpu", 3000, 1, 0, 0)]
    workload = target_workload(pods)
    ledger = NodeLedger(TWO, workload)
    for arrival, decision in zip(in_trace_order(pods), place(pods).decisions, strict=True):
        if decision.node:
            ledger.take(arrival.pod, decision.node, decision.gpus)
        assert ledger.fragmented == pytest.approx(fragmentation(ledger.free(), workload))


def test_the_ledger_refuses_what_does_not_fit() -> None:
    ledger = NodeLedger(TWO, ())
    ledger.take(share("p", 600), "a", [0])
    with pytest.raises(OverfullError):
        ledger.take(share("q", 600), "a", [0])


def test_the_same_seed_gives_the_same_order_of_nodes_and_another_seed_another() -> None:
    nodes = [TraceNode(f"n{i}", 1, 1, 0, "") for i in range(20)]
    first = nodes_in_seeded_order(nodes, 1)
    assert first == nodes_in_seeded_order(nodes[::-1], 1) != nodes_in_seeded_order(nodes, 2)
    assert sorted(first) == sorted(n.name for n in nodes)


@pytest.mark.parametrize(
    ("order", "wrong"),
    [
        (["a", "c", "b"], "o.txt, line 2: 'c' is not in the node list"),
        (["a", "b", "a"], "o.txt, line 3: 'a' is on line 1 already"),
        (["a"], "o.txt: the order lacks 1 node of the list, such as 'b'"),
    ],
)
def test_an_order_that_does_not_match_the_nodes_is_refused(order: list[str], wrong: str) -> None:
    with pytest.raises(TraceFileError) as refused:
        nodes_in_given_order(TWO, order, "o.txt")
    assert wrong in str(refused.value)


@pytest.mark.parametrize("policy", POLICIES)
def test_every_policy_places_what_fits(policy: Policy) -> None:
    pods = [share(f"p{i}", 250) for i in range(16)]
    run = place(pods, policy=policy)
    assert run.failed == 0
    assert run.digest == place(pods, policy=policy).digest


@pytest.mark.parametrize("policy", POLICIES)
def test_nodes_without_gpus_take_pods_without_gpus(policy: Policy) -> None:
    pods = [TracePod("c", 100, 1, 0, 0), share("g", 100)]
    run = place(pods, [TraceNode("bare", 8000, 4096, 0, "")], policy)
    assert where(run) == ["bare", ""]
    assert run.levels == ()


def test_a_profile_of_live_clusters_can_be_measured_too() -> None:
    pods = [share(f"p{i}", 500) for i in range(9)]
    run = benchmark.run(
        TWO, in_trace_order(pods), profiles()[0], (), order=["a", "b"], timer=lambda: 0.0
    )
    assert run.failed == 1
