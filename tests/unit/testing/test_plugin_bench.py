"""The test kit finds each way of breaking the contract, and has nothing against what keeps it."""

from collections.abc import Iterable
from typing import Any, ClassVar

import numpy as np
import pytest

from alnair.model.workload import Pod, PodSpec
from alnair.scheduler.framework.extension_points import Depends, Observer, Reason
from alnair.scheduler.profiles import registry
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.columns import Column, Mask, Rows
from alnair.testing import ContractError, PluginBench, node, pod

NODES = [
    node("a", cpu="4", gpus=2, labels={"zone": "x"}),
    node("b", cpu="8", labels={"zone": "y"}),
    node("c", cpu="16", gpus=1, taints=[{"key": "k", "effect": "NoSchedule"}]),
]
PODS = [
    pod("small", requests={"cpu": "500m"}),
    pod("gpu", limits={"nvidia.com/gpu": "1"}),
    pod("part", limits={"alnair/vgpu-memory": "4096", "alnair/vgpu-compute": "30"}),
    pod("picky", nodeSelector={"zone": "x"}, tolerations=[{"operator": "Exists"}]),
]
#: They compile what other plugins or objects tell, or are no filters and scores at all.
UNDER_TEST = [name for name in registry() if name != "DefaultPreemption"]


class Sound:
    """Refuses nodes that have less than two cpus free, and scores by free cpu."""

    name = "Sound"
    Compiled: ClassVar[type]

    def filter(self, spec: PodSpec, cluster: Cluster) -> Any:
        return self.Compiled(cluster)

    def score(self, spec: PodSpec, cluster: Cluster) -> Any:
        return self.Compiled(cluster).as_score()


class Enough:
    depends = Depends.BOOKED

    def __init__(self, cluster: Cluster) -> None:
        self.columns = cluster.columns

    def __call__(self, rows: Rows) -> Any:
        return self.columns.free[0, rows] >= 2000

    def reasons(self, rows: Rows) -> Iterable[tuple[Reason, Mask]]:
        yield Reason("too busy"), ~Enough.__call__(self, rows)

    def as_score(self) -> Any:
        return Free(self.columns)


class Free:
    depends = Depends.BOOKED

    def __init__(self, columns: Any) -> None:
        self.columns = columns

    def __call__(self, rows: Rows) -> Column:
        return np.clip(np.floor(self.columns.free[0, rows] / 1000), 0, 100)

    normalize: Any = None


class WrongDepends(Enough):
    depends = Depends.NODE


class ReadsWhileCompiling(Enough):
    def __init__(self, cluster: Cluster) -> None:
        super().__init__(cluster)
        self.then = cluster.columns.free[0].copy()

    def __call__(self, rows: Rows) -> Any:
        return self.then[rows] >= 2000

    def reasons(self, rows: Rows) -> Iterable[tuple[Reason, Mask]]:
        yield Reason("was too busy"), ~self(rows)


class NoReason(Enough):
    def reasons(self, rows: Rows) -> Iterable[tuple[Reason, Mask]]:
        return []


class Writes(Enough):
    def __call__(self, rows: Rows) -> Any:
        self.columns.free[0, rows] -= 0.0
        return super().__call__(rows)


class Relative(Enough):
    def __call__(self, rows: Rows) -> Any:
        free = self.columns.free[0, rows]
        return free >= free.mean()

    def reasons(self, rows: Rows) -> Iterable[tuple[Reason, Mask]]:
        yield Reason("below the mean"), ~self(rows)


class Scalar(Enough):
    def __call__(self, rows: Rows) -> Any:
        return True


class Numbers(Enough):
    def __call__(self, rows: Rows) -> Any:
        return super().__call__(rows).astype(float)


class Fickle(Enough):
    turn = 0

    def __call__(self, rows: Rows) -> Any:
        self.turn += 1
        return super().__call__(rows) & (self.turn % 2 == 0)


class HighScore(Enough):
    def as_score(self) -> Any:
        score = super().as_score()
        score.normalize = lambda raw, feasible: raw * 100
        return score


def plugin(compiled: type) -> Sound:
    made = Sound()
    made.Compiled = compiled  # type: ignore[misc]
    return made


@pytest.mark.parametrize(
    ("compiled", "problem"),
    [
        (WrongDepends, "the cached answer for node .* is .*: `depends` must name all"),
        (NoReason, "refuses node .*, but gives no reason against it"),
        (Writes, "writes to the scheduler's columns"),
        (Relative, "may not depend on which rows are asked for"),
        (Scalar, "answers bool for 24 rows: answer an array, one per row"),
        (Numbers, "answers float64: answer an array of True and False"),
        (Fickle, "no chance, no clock"),
        (HighScore, "it must be a whole number from 0 to 100"),
        (ReadsWhileCompiling, "nothing of a row may be read while compiling"),
    ],
)
def test_a_broken_rule_is_found_and_named(compiled: type, problem: str) -> None:
    with pytest.raises(ContractError, match=problem):
        PluginBench(plugin(compiled), NODES).check(PODS)


def test_a_sound_plugin_passes() -> None:
    PluginBench(plugin(Enough), NODES).check(PODS)


@pytest.mark.parametrize("name", UNDER_TEST)
def test_the_plugins_that_ship_keep_their_contract(name: str) -> None:
    PluginBench(registry()[name](), NODES).check(PODS, rounds=60)


def test_what_is_bound_takes_room_until_it_is_gone() -> None:
    bench = PluginBench(plugin(Enough), NODES)
    large = pod("large", requests={"cpu": "3"})
    bench.bind(large, "a")
    assert bench.refused(PODS[0]) == {"a": ["too busy"]}
    assert bench.best(PODS[0]) == "c"
    bench.remove(large)
    assert bench.refused(PODS[0]) == {}


def test_a_pod_or_node_that_the_scheduler_could_not_read_is_no_test_case() -> None:
    with pytest.raises(ValueError, match="pod p: "):
        pod("p", requests={"cpu": "many"})
    with pytest.raises(ValueError, match="node n: "):
        node("n", cpu="many")


class Silent(Observer):
    """Counts pods, and tells nobody."""

    def __init__(self) -> None:
        self.pods = 0

    def pod_added(self, pod: Pod) -> None:
        self.pods += 1


class Forgetful(Sound):
    """Scores by how many pods have come."""

    def observe(self, cluster: Cluster) -> Silent:
        return Silent()

    def filter(self, spec: PodSpec, cluster: Cluster) -> Any:
        return None

    def score(self, spec: PodSpec, cluster: Cluster) -> Any:
        return Constant(cluster, cluster.observations.of(self.name).pods)


class Constant:
    depends = Depends.NODE
    normalize: Any = None

    def __init__(self, cluster: Cluster, value: float) -> None:
        self.columns, self.value = cluster.columns, min(value, 100)

    def __call__(self, rows: Rows) -> Column:
        return np.full(self.columns.alive[rows].size, float(self.value))


def test_an_observer_that_does_not_say_that_it_learned_is_found() -> None:
    with pytest.raises(ContractError, match="an observer's `learn` must say when"):
        PluginBench(Forgetful(), NODES).check(PODS)
