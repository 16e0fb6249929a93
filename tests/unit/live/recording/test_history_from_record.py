"""What is seen of a cluster becomes its history."""

from typing import Any

import msgspec
import pytest

from alnair.history.history import History
from alnair.history.metrics import compute
from alnair.kube.codec import WatchEvent
from alnair.kube.objects.simulated_nodes import gpu_uuid, manifest
from alnair.kube.pod_groups.dialects import PodGroupWire
from alnair.live.list_and_watch import Batch
from alnair.live.recording.decisions import read
from alnair.live.recording.history_from_record import build
from alnair.live.recording.record_lines import NodeWire, PodWire
from alnair.live.recording.recorded_cluster import Known, Line
from alnair.processes.scheduler.metrics import metrics
from alnair.scheduler.metric_counters import SchedulerCounters
from alnair.serving.exposition import text_of
from alnair.traces.openb import TraceNode
from kit.record_notes import Notes

#: When all begins; what follows is in seconds from it.
DAY = 1767225600.0
NODE = "n0"


def at(seconds: float) -> str:
    import datetime as dt

    return dt.datetime.fromtimestamp(DAY + seconds, dt.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def pod(name: str, created: float = 0, **more: Any) -> dict[str, Any]:
    """A pod as the API server has it; see the names of `more` below."""
    conditions = []
    if "bound" in more:
        conditions.append(
            {"type": "PodScheduled", "status": "True", "lastTransitionTime": at(more["bound"])}
        )
    if "refused" in more:
        conditions.append({"type": "PodScheduled", "status": "False", "message": more["refused"]})
    if "target" in more:
        conditions.append({"type": "DisruptionTarget", "status": "True", "reason": more["target"]})
    status: dict[str, Any] = {"phase": more.get("phase", "Pending"), "conditions": conditions}
    if "ended" in more:
        ended = {"state": {"terminated": {"finishedAt": at(more["ended"])}}}
        status["containerStatuses"] = [ended]
    annotations = {}
    if "parts" in more:
        parts = [
            {"uuid": gpu_uuid(NODE, i), "index": i, "memory_mib": m, "compute": c, "whole": w}
            for i, m, c, w in more["parts"]
        ]
        document = {"v": 1, "t": at(0), "containers": {"main": parts}}
        annotations["ai.centaurus.io/gpu-assignment"] = msgspec.json.encode(document).decode()
    if "util" in more:
        document = {"v": 1, "t": at(0), "gpu": more["util"]}
        annotations["ai.centaurus.io/utilization"] = msgspec.json.encode(document).decode()
    owners = [
        {"apiVersion": "batch/v1", "kind": "Job", "name": owner, "uid": "o", "controller": True}
        for owner in more.get("owner", ())
    ]
    limits = more.get("limits", {"nvidia.com/gpu": "1"})
    return {
        "metadata": {
            "name": name,
            "namespace": more.get("namespace", "team"),
            "uid": more.get("uid", name),
            "creationTimestamp": at(created),
            "annotations": annotations,
            "labels": more.get("labels", {}),
            "ownerReferences": owners,
        },
        "spec": {
            "nodeName": NODE if "bound" in more else None,
            "containers": [{"name": "main", "resources": {"limits": limits}}],
        },
        "status": status,
    }


class World:
    """A cluster that is watched; times are seconds from the begin of the day."""

    def __init__(self, before: Known | None = None) -> None:
        self.notes = Notes(before)
        self.known = before or Known()

    def node(self, now: float, event: str = "", **status: Any) -> None:
        node = manifest(TraceNode(NODE, 8000, 65536, 2, "T4"), at(0))
        node["metadata"]["creationTimestamp"] = at(0)
        if status:
            node["status"]["conditions"][0].update(status)
        wire = msgspec.convert(node, NodeWire)
        events = [WatchEvent(event, wire)] if event else []
        self.notes.nodes(Batch(None if event else [wire], events, 0.0, 0.0), DAY + now)
        self._take()

    def pods(self, now: float, *pods: dict[str, Any], event: str = "") -> None:
        """A list of all pods or, with an event, what happened to some."""
        wires = msgspec.convert(list(pods), list[PodWire])
        events = [WatchEvent(event, wire) for wire in wires] if event else []
        self.notes.pods(Batch(None if event else wires, events, 0.0, 0.0), DAY + now)
        self._take()

    def group(self, name: str, least: int) -> None:
        body = {"metadata": {"name": name, "namespace": "team"}, "spec": {"minMember": least}}
        wire = msgspec.convert(body, PodGroupWire)
        self.notes.groups(Batch([wire], [], 0.0, 0.0), "scheduling.x-k8s.io/v1alpha1", DAY)
        self._take()

    def _take(self) -> None:
        for line in self.notes.taken():
            # As it comes back from a file.
            self.known.take(msgspec.json.decode(msgspec.json.encode(line), type=Line))

    def history(self, end: float, **options: Any) -> History:
        self.known.take(Line(t=DAY + end))
        return build(self.known, **{"begin": DAY, **options})


@pytest.fixture
def world() -> World:
    found = World()
    found.node(0)
    return found


def test_a_finished_pod_tells_all_its_times_at_one_look(world: World) -> None:
    world.pods(
        100,
        pod(
            "p", 5, bound=10, ended=40, phase="Succeeded", parts=[(1, 15360, 100, True)], util=50.0
        ),
    )
    found = world.history(100)
    (job,) = found.jobs.values()
    (stay,) = found.pods["p"].stays
    assert (job.name, job.user, job.submitted, job.finished) == ("team/Pod/p", "team", 5, 40)
    assert (job.gpus, job.duration, job.gang) == (1.0, 30, False)
    assert (stay.begin, stay.end, stay.how, stay.used) == (10, 40, "completed", 15)
    assert [(part.uuid, part.milli) for part in stay.gpus] == [(gpu_uuid(NODE, 1), 1000)]
    metrics = compute(found)
    assert metrics.gpu.allocated_pct == pytest.approx(15)
    assert metrics.gpu.used_pct == pytest.approx(7.5)


def test_a_slice_counts_with_its_memory_or_its_compute_whichever_is_more(world: World) -> None:
    limits = {"alnair/vgpu-memory": "7680", "alnair/vgpu-compute": "20"}
    world.pods(
        100,
        pod("memory", bound=10, limits=limits, parts=[(0, 7680, 20, False)]),
        pod(
            "compute",
            bound=10,
            limits=limits | {"alnair/vgpu-compute": "60"},
            parts=[(1, 7680, 60, False)],
        ),
    )
    found = world.history(100)
    milli = {uid: p.stays[0].gpus[0].milli for uid, p in found.pods.items()}
    assert milli == {"memory": 500, "compute": 600}
    assert {(p.gpus, p.gpu_milli) for p in found.pods.values()} == {(1, 500), (1, 600)}


@pytest.mark.parametrize(
    ("seen", "how", "wasted"),
    [
        ({"phase": "Failed", "ended": 40}, "failed", 30),
        ({"target": "PreemptionByScheduler"}, "preempted", 30),
        ({"target": "EvictionByEvictionAPI"}, "evicted", 30),
        ({"target": "DeletionByTaintManager"}, "lost", 30),
        ({}, "deleted", 0),
    ],
)
def test_how_a_pod_went_is_read_from_its_last_state(
    world: World, seen: dict[str, Any], how: str, wasted: float
) -> None:
    world.pods(20, pod("p", bound=10))
    world.pods(40, pod("p", bound=10, **seen), event="DELETED")
    (stay,) = world.history(100).pods["p"].stays
    assert (stay.how, stay.end, stay.lost) == (how, 40, wasted)


def test_a_pod_that_goes_with_its_node_was_lost_with_it(world: World) -> None:
    world.pods(20, pod("p", bound=10))
    world.node(38, event="DELETED")
    world.pods(40, pod("p", bound=10), event="DELETED")
    found = world.history(100)
    assert found.pods["p"].stays[0].how == "lost"
    assert found.nodes[NODE].up == [(0, 38)]


def test_a_node_that_is_not_ready_is_not_there(world: World) -> None:
    world.node(30, "MODIFIED", status="Unknown", lastTransitionTime=at(25))
    world.node(60, "MODIFIED", status="True", lastTransitionTime=at(50))
    assert world.history(100).nodes[NODE].up == [(0, 25), (50, None)]


def test_a_job_is_finished_when_as_many_pods_completed_as_it_had_at_once(world: World) -> None:
    first = pod("a", 0, bound=5, ended=20, phase="Failed", owner=["train"])
    second = pod("b", 20, bound=25, ended=60, phase="Succeeded", owner=["train"])
    beside = pod("c", 0, bound=5, ended=30, phase="Succeeded", owner=["train"])
    world.pods(100, first, second, beside)
    (job,) = world.history(100).jobs.values()
    assert (job.name, job.gpus, job.finished, job.duration) == ("team/Job/train", 2.0, 60, 35)
    half = World()
    half.node(0)
    half.pods(100, first, beside)
    assert half.history(100).jobs["team/Job/train"].finished is None


def test_a_gang_is_what_its_group_says(world: World) -> None:
    label = {"scheduling.x-k8s.io/pod-group": "g"}
    world.group("g", 2)
    world.pods(
        100,
        pod("a", 0, bound=10, labels=label),
        pod("b", 1, bound=12, labels=label),
        pod("c", 2, refused="0/1 nodes are available", labels=label),
    )
    found = world.history(100)
    (job,) = found.jobs.values()
    assert (job.name, job.gang, job.least) == ("team/PodGroup/g", True, 2)
    metrics = compute(found)
    assert (metrics.gangs.whole, metrics.gangs.spread.max) == (1, 2)
    assert metrics.refusals == {"0/1 nodes are available": 1}


def test_measurements_hold_until_the_next_one(world: World) -> None:
    world.pods(10, pod("p", bound=10, util=20.0))
    world.pods(30, pod("p", bound=10, util=80.0), event="MODIFIED")
    (stay,) = world.history(50).pods["p"].stays
    assert stay.used == pytest.approx(0.2 * 20 + 0.8 * 20)


def test_pods_of_others_take_room_and_count_no_further(world: World) -> None:
    world.pods(
        100,
        pod("mine", bound=10),
        pod("other", bound=10, namespace="else"),
        pod("waits", namespace="else"),
    )
    metrics = compute(world.history(100, namespaces=frozenset({"team"})))
    assert metrics.gpu.allocated_pct == pytest.approx(90)
    assert (metrics.jobs.total, metrics.pods.total, metrics.users) == (1, 1, 1)


@pytest.mark.parametrize(
    ("spec", "models"),
    [
        ({"nodeSelector": {"nvidia.com/gpu.product": "T4"}}, ("T4",)),
        ({"affinity": [["T4", "P100"], ["A10"]]}, ("A10", "P100", "T4")),
        ({"affinity": [["T4"], []]}, ()),
        ({}, ()),
    ],
)
def test_models_may_be_named_by_the_label_of_nodes(
    world: World, spec: dict[str, Any], models: tuple[str, ...]
) -> None:
    asking = pod("p")
    if terms := spec.get("affinity"):
        product = {"key": "nvidia.com/gpu.product", "operator": "In"}
        zone = {"key": "zone", "operator": "Exists"}
        found = [
            {"matchExpressions": [product | {"values": values}] if values else [zone]}
            for values in terms
        ]
        required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": found}}
        spec = {"affinity": {"nodeAffinity": required}}
    asking["spec"] |= spec
    world.pods(10, asking)
    assert world.history(20).pods["p"].models == models


def test_decisions_are_counted_from_look_to_look_and_over_restarts(world: World) -> None:
    for now, counted in ((10, (100, 1.0)), (20, (150, 1.5)), (30, (20, 0.1)), (40, (30, 0.2))):
        world.notes.decided(counted, DAY + now)
    world._take()
    assert compute(world.history(50)).decisions.count == 50 + 20 + 10
    later = world.history(50, begin=DAY + 15)
    assert (later.decisions, later.decision_seconds) == (30, pytest.approx(0.2))


def test_decisions_are_read_from_the_schedulers_own_metrics() -> None:
    counters = SchedulerCounters()
    counters.algorithm.observe(0.25)
    counters.algorithm.observe(0.5)
    assert read(text_of(metrics(counters, None))) == (2, 0.75)
    assert read("") is None


def test_a_clock_that_is_behind_makes_no_time_negative(world: World) -> None:
    world.pods(5, pod("p", 8, bound=9))
    assert compute(world.history(6)).gpu.allocated_hours == 0


def test_one_look_begins_with_the_oldest_pod_that_was_asked_for(world: World) -> None:
    world.pods(100, pod("system", 0, bound=1, namespace="else"), pod("mine", 60, bound=70))
    found = world.history(100, begin=None, namespaces=frozenset({"team"}))
    assert (found.end, found.pods["mine"].submitted) == (40, 0)
    assert compute(found).gpu.allocated_pct == pytest.approx(50 + 50 * 30 / 40)


def test_a_pod_that_ended_without_a_node_waits_no_more(world: World) -> None:
    world.pods(100, pod("p", 0, phase="Failed", ended=40))
    found = world.history(100)
    assert (found.pods["p"].gone, compute(found).jobs.left) == (40, 1)


def test_what_ended_before_is_not_in_it_and_what_began_before_keeps_its_times(
    world: World,
) -> None:
    world.pods(100, pod("old", 0, bound=5, ended=20, phase="Succeeded"), pod("long", 10, bound=30))
    found = world.history(100, begin=DAY + 50)
    assert list(found.pods) == ["long"]
    assert (found.end, found.pods["long"].submitted, found.pods["long"].stays[0].begin) == (
        50,
        -40,
        -20,
    )
    assert compute(found).gpu.allocated_pct == 50


def test_what_went_while_nobody_looked_was_there_when_somebody_looked_last(world: World) -> None:
    world.pods(20, pod("gone", bound=10), pod("stays", bound=10, uid="s"))
    world.known.take(Line(t=DAY + 30))
    later = World(world.known)
    later.node(70)
    later.pods(70, pod("stays", bound=10, uid="s"), pod("new", 65))
    found = later.history(100)
    assert found.pods["gone"].stays[0].end == 30
    assert found.pods["s"].stays[0].end is None
    assert found.pods["new"].submitted == 65
    # And what did not change is not written again.
    assert not later.notes.lines


def test_pods_that_say_nothing_of_their_gpus_are_guessed_to_have_the_lowest_free_ones(
    world: World,
) -> None:
    world.pods(
        100,
        pod("ours", bound=10, parts=[(0, 15360, 100, True)]),
        pod("foreign", bound=20),
        pod("one-too-many", bound=30),
    )
    found = world.history(100)
    assert [part.uuid for part in found.pods["foreign"].stays[0].gpus] == [gpu_uuid(NODE, 1)]
    assert found.pods["one-too-many"].stays[0].gpus == ()


def test_a_pod_of_a_node_that_nobody_saw_still_has_its_times() -> None:
    world = World()
    world.pods(100, pod("p", 0, bound=10))
    found = world.history(100)
    assert found.pods["p"].stays[0].begin == 10
    assert compute(found).pods.running == 1
