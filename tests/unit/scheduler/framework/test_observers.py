"""Observers: what a plugin may watch, when its scores are made anew, and where its state goes."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import msgspec
import numpy as np
import pytest

from alnair.configuration.profile_assembly import Assembly
from alnair.configuration.scheduler_file import Configuration
from alnair.model.nodes import Node
from alnair.model.workload import Pod, PodSpec
from alnair.scheduler.engine import events
from alnair.scheduler.engine.engine import Engine
from alnair.scheduler.framework.extension_points import Depends, Normalize, Observer, Profile
from alnair.scheduler.framework.observers import StateError
from alnair.scheduler.framework.plugin_errors import Faults, Guarded
from alnair.scheduler.plugins.opportunity_cost.workload_mix import WorkloadMix
from alnair.scheduler.plugins.priority_sort import PrioritySort
from alnair.scheduler.profiles import profiles
from alnair.scheduler.state.cluster import Cluster
from alnair.scheduler.state.nodes.columns import Column, Rows
from alnair.snapshots import snapshot
from alnair.snapshots.replay import replay
from alnair.snapshots.snapshot import SnapshotError
from alnair.snapshots.snapshot_profiles import decode
from kit import make


class Came(msgspec.Struct, frozen=True):
    """How many pods came of each namespace."""

    pods: dict[str, int]


class Diary(Observer):
    """Writes down what it hears, and counts pods."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.lines: list[str] = []
        self.pods: Counter[str] = Counter()
        self.news = False

    def node_changed(self, node: Node, row: int) -> None:
        assert self.cluster.columns.nodes[row] == node
        self.lines.append(f"node {node.name}")

    def node_gone(self, name: str, row: int) -> None:
        there = self.cluster.columns.nodes[row]
        assert there is not None
        assert there.name == name
        self.lines.append(f"no node {name}")

    def pod_added(self, pod: Pod) -> None:
        self.pods[pod.namespace] += 1
        self.news = True
        self.lines.append(f"pod {pod.name}")

    def pod_gone(self, pod: Pod) -> None:
        self.lines.append(f"no pod {pod.name}")

    def learn(self) -> bool:
        news, self.news = self.news, False
        return news

    def save(self) -> Came | None:
        return Came(dict(self.pods)) if self.pods else None

    def restore(self, state: Came) -> None:
        self.pods = Counter(state.pods)


class Crowded:
    """Scores all nodes by how many pods have come."""

    name = "Crowded"
    State = Came

    def __init__(self) -> None:
        self.compiled = 0

    def observe(self, cluster: Cluster) -> Diary:
        return Diary(cluster)

    def score(self, spec: PodSpec, cluster: Cluster) -> "Constant":
        self.compiled += 1
        return Constant(cluster, cluster.observations.of(self.name).pods.total())


class Constant:
    depends = Depends.NODE
    normalize: Normalize | None = None

    def __init__(self, cluster: Cluster, value: float) -> None:
        self.columns, self.value = cluster.columns, value

    def __call__(self, rows: Rows) -> Column:
        return np.full(self.columns.alive[rows].size, float(self.value))


class Failing(Observer):
    """Fails at all that it is asked."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)


def profile(scheduler: str = "test", plugin: Any = None) -> Profile:
    return Profile(scheduler, [PrioritySort(), plugin or Crowded()])


def diary(engine: Engine) -> Diary:
    found = engine.view.cluster.observations.of("Crowded")
    assert isinstance(found, Diary)
    return found


def pod(name: str, **rest: Any) -> Pod:
    return make.pod(name, scheduler="test", **rest)


@pytest.mark.parametrize(
    ("happens", "heard"),
    [
        ([events.NodeChanged(make.node("n"))] * 2, ["node n"]),
        ([events.NodeChanged(make.node("n", cpu=c)) for c in (1, 2)], ["node n", "node n"]),
        ([events.NodeChanged(make.node("n")), events.NodeGone("n")], ["node n", "no node n"]),
        ([events.NodeGone("n")], []),
        ([events.PodChanged(pod("p")), events.PodChanged(pod("p", priority=1))], ["pod p"]),
        ([events.PodChanged(pod("p")), events.PodGone("uid-default-p")], ["pod p", "no pod p"]),
        ([events.PodGone("uid-default-p")], []),
        (
            [
                events.PodChanged(pod("p")),
                events.PodChanged(pod("p", finished=True)),
                events.PodGone("uid-default-p"),
            ],
            ["pod p", "no pod p"],
        ),
        (
            [
                events.PodChanged(pod("p", group="g")),
                events.PodChanged(pod("p", group="g", finished=True)),
                events.PodGone("uid-default-p"),
            ],
            ["pod p", "no pod p"],
        ),
        ([events.PodChanged(make.pod("p", scheduler="theirs"))], []),
        ([events.PodChanged(make.pod("p", scheduler="theirs", node="n"))], ["pod p"]),
    ],
)
def test_an_observer_hears_once_of_each_that_comes_and_goes(
    happens: list[events.Event], heard: list[str]
) -> None:
    engine = Engine([profile()])
    engine.learn(happens, 0.0)
    assert diary(engine).lines == heard


def test_a_score_is_made_anew_only_when_its_observer_has_learned_something() -> None:
    plugin = Crowded()
    ours = profile(plugin=plugin)
    engine = Engine([ours])
    engine.learn([events.NodeChanged(make.node("n"))], 0.0)
    spec = make.spec()
    for event, times in [
        (events.NodeChanged(make.node("m")), 1),
        (events.PodChanged(pod("p", node="n")), 2),
        (events.PodGone("uid-default-p"), 2),
        (events.PodChanged(pod("q", node="n")), 3),
    ]:
        engine.learn([event], 0.0)
        engine.view.evaluate(spec, ours)
        assert plugin.compiled == times


def test_profiles_share_what_a_plugin_learns_and_engines_do_not() -> None:
    ours = [profile("test"), profile("other")]
    first, second = Engine(ours), Engine(ours)
    first.learn([events.PodChanged(pod("p"))], 0.0)
    assert diary(first).lines == ["pod p"]
    assert diary(second).lines == []


def test_what_was_learned_is_saved_by_the_name_of_the_plugin_and_goes_on_elsewhere() -> None:
    engine, again = Engine([profile()]), Engine([profile()])
    engine.learn([events.PodChanged(pod("p")), events.PodGone("uid-default-p")], 0.0)
    taken = snapshot.decode(snapshot.encode(snapshot.take(engine.view, (), 0, 0.0)))
    assert taken.plugins == {"Crowded": {"pods": {"default": 1}}}
    again.learn(list(snapshot.replay_events(taken)), 0.0)
    assert diary(again).pods == {"default": 1}


@pytest.mark.parametrize("states", [{}, {"Unknown": {"x": 1}}])
def test_a_plugin_without_a_saved_state_starts_with_what_it_hears(
    states: Mapping[str, Any],
) -> None:
    engine = Engine([profile()])
    engine.learn([events.PodChanged(pod("p")), events.PluginStates(states)], 0.0)
    assert diary(engine).pods == {"default": 1}


def test_a_state_that_is_none_of_the_plugins_is_refused() -> None:
    engine = Engine([profile()])
    with pytest.raises(StateError, match="state of plugin Crowded: Object missing required field"):
        engine.learn([events.PluginStates({"Crowded": {}})], 0.0)


def test_a_snapshot_with_a_damaged_state_is_refused_as_damaged() -> None:
    assembly = Assembly(Configuration())
    engine = Engine(assembly.profiles())
    taken = decode(snapshot.encode(snapshot.take(engine.view, assembly.explicit(), 0, 0.0)))
    broken = msgspec.structs.replace(taken, plugins={"OpportunityCost": {"mix": 1}})
    with pytest.raises(SnapshotError, match="file is a damaged snapshot: state of plugin Opp"):
        replay(broken, "file")


def test_without_an_observing_plugin_nothing_is_learned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(WorkloadMix, "gather", lambda *_: pytest.fail("nobody wants to know"))
    blind = [p for p in profiles() if not p.observers]
    assert len(blind) == len(profiles()) - 2, "of one policy under two names"
    engine = Engine(blind)
    engine.learn([events.NodeChanged(make.node("n")), events.PodChanged(make.pod("p"))], 0.0)
    engine.step([], 1.0)
    assert engine.view.cluster.observations.changes == 0
    assert snapshot.take(engine.view, (), 0, 0.0).plugins == {}


def test_an_observer_that_fails_is_said_to_and_all_else_goes_on() -> None:
    said: list[str] = []
    plugin = Crowded()
    plugin.observe = lambda cluster: Failing()  # type: ignore[assignment,return-value]
    guarded = Guarded(plugin, Faults("plugin Crowded of acme 1.0", said.append))
    engine = Engine([profile(plugin=guarded)])
    engine.learn(
        [
            events.NodeChanged(make.node("n")),
            events.PodChanged(pod("p")),
            events.PodGone("uid-default-p"),
            events.NodeGone("n"),
            events.PluginStates({"Crowded": {"pods": {}}}),
        ],
        0.0,
    )
    assert engine.view.plugin_states() == {}
    points = ("learned", "node_changed", "pod_added", "pod_gone", "node_gone", "restore", "learn")
    assert [line.partition(" failed in its observer's ")[2] for line in said] == [
        f"{point}: RuntimeError: {point}" for point in (*points, "save")
    ]


def test_a_plugin_that_cannot_observe_observes_nothing() -> None:
    said: list[str] = []
    plugin = Crowded()
    plugin.observe = lambda cluster: 1 / 0  # type: ignore[assignment,return-value]
    engine = Engine([profile(plugin=Guarded(plugin, Faults("plugin Crowded", said.append)))])
    engine.learn([events.PodChanged(pod("p"))], 0.0)
    assert said == ["plugin Crowded failed in observe: ZeroDivisionError: division by zero"]
