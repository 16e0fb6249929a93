"""Scoring by how full a node would be, against the formulas once more, one node after the other."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alnair.model.nodes import Node
from alnair.model.workload import PodSpec
from alnair.scheduler.framework.allocation_scores import Allocation, ScoringStrategy, Strategy
from alnair.scheduler.framework.arguments import ArgumentError, made
from alnair.scheduler.plugins.node_affinity import NodeAffinity
from alnair.scheduler.plugins.node_resources_balanced_allocation import (
    NodeResourcesBalancedAllocation,
)
from alnair.scheduler.plugins.node_resources_fit.cpu_and_memory import CpuAndMemory
from alnair.scheduler.plugins.node_resources_fit.plugin import FitArguments, NodeResourcesFit
from alnair.scheduler.plugins.node_unschedulable import NodeUnschedulable
from alnair.scheduler.state.accounts import Accounts, Record, State
from alnair.scheduler.state.nodes.columns import Column
from kit import make

FPGA = "example.com/fpga"
amounts = st.integers(0, 12)
weights = st.integers(1, 100)
resources = st.lists(
    st.tuples(st.sampled_from(("cpu", "memory", FPGA, "ephemeral-storage", "pods")), weights),
    min_size=1,
    max_size=4,
    unique_by=lambda r: r[0],
)
shapes = st.lists(
    st.tuples(st.integers(0, 100), st.integers(0, 10)),
    min_size=1,
    max_size=4,
    unique_by=lambda p: p[0],
).map(sorted)


def quantities(cpu: int, memory: int, fpga: int, storage: int) -> dict[str, int]:
    return {"cpu": cpu, "memory": memory, FPGA: fpga, "ephemeral-storage": storage}


demands = st.builds(quantities, amounts, amounts, amounts, amounts)


def spec_of(asked: dict[str, int]) -> PodSpec:
    rest = {name: n for name, n in asked.items() if name not in ("cpu", "memory")}
    return make.spec(cpu=asked["cpu"], memory=asked["memory"], extended=rest)


def scores(plugin: Any, spec: PodSpec, there: dict[str, int], held: list[PodSpec]) -> Column:
    accounts = Accounts()
    accounts.put_node(Node("n", {**there, "pods": 110}))
    for number, asked in enumerate(held):
        pod = make.pod(f"p{number}", asked)
        accounts.place(Record(pod), "n", State.BOUND, 0.0)
    score = plugin.score(spec, accounts.cluster)
    return score(slice(0, 1))[0]


def share(kind: str, shape: list[tuple[int, int]], used: int, capacity: int) -> int:
    if kind == "LeastAllocated":
        return max(capacity - used, 0) * 100 // capacity
    if kind == "MostAllocated":
        return min(used, capacity) * 100 // capacity
    percent = min(used * 100 // capacity, 100)
    for i, (utilization, score) in enumerate(shape):
        if percent <= utilization:
            if not i:
                return score * 10
            low_at, low = shape[i - 1]
            rise = (score - low) * 10 * (percent - low_at)
            width = utilization - low_at
            return low * 10 + (rise // width if rise >= 0 else -(-rise // width))
    return shape[-1][1] * 10


@given(
    st.sampled_from(("LeastAllocated", "MostAllocated", "RequestedToCapacityRatio")),
    resources,
    shapes,
    demands,
    st.lists(demands, max_size=2),
    demands,
)
def test_strategies_score_as_their_formulas_say(
    kind: str,
    weighed: list[tuple[str, int]],
    shape: list[tuple[int, int]],
    asked: dict[str, int],
    held: list[dict[str, int]],
    there: dict[str, int],
) -> None:
    strategy: dict[str, Any] = {
        "type": kind,
        "resources": [{"name": n, "weight": w} for n, w in weighed],
    }
    if kind == "RequestedToCapacityRatio":
        points = [{"utilization": u, "score": s} for u, s in shape]
        strategy["requestedToCapacityRatio"] = {"shape": points}
    plugin = made(NodeResourcesFit, {"scoringStrategy": strategy})
    spec, holding = spec_of(asked), [spec_of(h) for h in held]
    total = weight_sum = 0
    for name, weight in weighed:
        if name == "pods" or not there[name] or (name == FPGA and not asked[name]):
            continue
        pods = [spec, *holding]
        if name == "cpu":
            used = sum(p.scored_cpu for p in pods)
        elif name == "memory":
            used = sum(p.scored_memory for p in pods)
        else:
            used = sum(dict(p.requests).get(name, 0) for p in pods)
        score = share(kind, shape, used, there[name])
        if kind != "RequestedToCapacityRatio" or score > 0:
            total += score * weight
            weight_sum += weight
    want = 0
    if weight_sum:
        want = total // weight_sum
        if kind == "RequestedToCapacityRatio":
            want = int(total / weight_sum + 0.5)
    assert scores(plugin, spec, there, holding) == want


@given(
    st.sampled_from(("LeastAllocated", "MostAllocated")),
    demands,
    st.lists(st.tuples(demands, st.lists(demands, max_size=2)), min_size=1, max_size=4),
)
def test_the_fast_way_of_the_usual_resources_gives_the_same_row_by_row_and_for_all(
    kind: Strategy, asked: dict[str, int], nodes: list[tuple[dict[str, int], list[dict[str, int]]]]
) -> None:
    accounts = Accounts()
    for number, (there, held) in enumerate(nodes):
        accounts.put_node(Node(f"n{number}", {**there, "pods": 110}))
        for i, pod in enumerate(held):
            record = Record(make.pod(f"p{number}-{i}", spec_of(pod)))
            accounts.place(record, f"n{number}", State.BOUND, 0.0)
    spec, strategy = spec_of(asked), ScoringStrategy(type=kind)
    usual = NodeResourcesFit(FitArguments(strategy)).score(spec, accounts.cluster)
    assert isinstance(usual, CpuAndMemory)
    want = Allocation(spec, accounts.cluster, strategy)(slice(0, len(nodes)))
    assert list(usual(slice(0, len(nodes)))) == list(want)
    assert [usual(slice(i, i + 1))[0] for i in range(len(nodes))] == list(want)


@given(demands, st.lists(demands, max_size=2), demands)
def test_evenness_is_judged_by_what_the_pod_changes(
    asked: dict[str, int], held: list[dict[str, int]], there: dict[str, int]
) -> None:
    names = ["cpu", "memory", FPGA]
    plugin = made(NodeResourcesBalancedAllocation, {"resources": [{"name": n} for n in names]})
    spec, holding = spec_of(asked), [spec_of(h) for h in held]
    counted = [n for n in names if there[n] and (n != FPGA or asked[n])]
    if not any(asked[n] for n in names):
        assert plugin.score(spec, Accounts().cluster) is None
        return

    def even(pods: list[dict[str, int]]) -> int:
        parts = [min(sum(p[n] for p in pods) / there[n], 1.0) for n in counted]
        if len(parts) == 2:
            return int((1 - abs((parts[0] - parts[1]) / 2)) * 100)
        if len(parts) < 2:
            return 100
        mean = sum(parts) / len(parts)
        deviation = (sum((p - mean) * (p - mean) for p in parts) / len(parts)) ** 0.5
        return int((1 - deviation) * 100)

    want = 50 + (50 + even([*held, asked]) - even(held)) // 2
    assert scores(plugin, spec, there, holding) == want


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"scoringStrategy": {"type": "Fullest"}}, "Invalid enum value 'Fullest'"),
        ({"scoring": {}}, "unknown field `scoring`; known fields: scoringStrategy, "),
        (
            {"scoringStrategy": {"resources": [{"name": "cpu", "weight": 0}]}},
            "scoringStrategy.resources[0].weight: 0 is out of range, write a number from 1 to 100",
        ),
        (
            {"scoringStrategy": {"type": "RequestedToCapacityRatio"}},
            "scoringStrategy.requestedToCapacityRatio.shape: give at least one point",
        ),
        (
            {"scoringStrategy": {"requestedToCapacityRatio": {"shape": []}}},
            "leave it out unless type is RequestedToCapacityRatio",
        ),
        ({"ignoredResources": ["a b"]}, "ignoredResources[0]: 'a b' is no resource"),
        ({"ignoredResourceGroups": ["a/b"]}, "ignoredResourceGroups[0]: 'a/b' is no group"),
        ({"ignoredResources": "all"}, "Expected `array`, got `str` - at `$.ignoredResources`"),
    ],
)
def test_arguments_are_refused_with_field_and_remedy(arguments: dict[str, Any], text: str) -> None:
    with pytest.raises(ArgumentError) as error:
        made(NodeResourcesFit, arguments)
    assert str(error.value).startswith("arguments of NodeResourcesFit: ")
    assert text in str(error.value)


@pytest.mark.parametrize(
    ("points", "text"),
    [
        ([(50, 1), (50, 2)], "shape[1].utilization: write the points by growing utilization"),
        ([(101, 1)], "shape[0].utilization: 101 is out of range"),
        ([(0, 11)], "shape[0].score: 11 is out of range, write a number from 0 to 10"),
    ],
)
def test_shapes_are_checked(points: list[tuple[int, int]], text: str) -> None:
    shape = [{"utilization": u, "score": s} for u, s in points]
    strategy = {"type": "RequestedToCapacityRatio", "requestedToCapacityRatio": {"shape": shape}}
    with pytest.raises(ArgumentError) as error:
        made(NodeResourcesFit, {"scoringStrategy": strategy})
    assert text in str(error.value)


def test_evenness_knows_no_weights_and_no_resource_twice() -> None:
    twice = [{"name": "cpu", "weight": 2}, {"name": "cpu"}]
    with pytest.raises(ArgumentError) as error:
        made(NodeResourcesBalancedAllocation, {"resources": twice})
    assert "resources[0].weight: 2 must be 1" in str(error.value)
    assert "resources[1].name: cpu occurs twice" in str(error.value)


def test_a_malformed_added_affinity_is_refused() -> None:
    term = {"matchExpressions": [{"key": "a b", "operator": "In"}]}
    key = "requiredDuringSchedulingIgnoredDuringExecution"
    with pytest.raises(ArgumentError) as error:
        made(NodeAffinity, {"addedAffinity": {key: {"nodeSelectorTerms": [term]}}})
    path = f"addedAffinity.{key}.nodeSelectorTerms[0].matchExpressions[0]"
    assert f'{path}.key: Invalid value: "a b": name part must consist' in str(error.value)
    assert f"{path}.values: Invalid value: null: for 'in', 'notin' operators" in str(error.value)


def test_a_plugin_without_arguments_takes_none() -> None:
    with pytest.raises(ArgumentError) as error:
        made(NodeUnschedulable, {"strict": True})
    assert str(error.value) == (
        "arguments of NodeUnschedulable: Object contains unknown field `strict`; known fields: none"
    )
