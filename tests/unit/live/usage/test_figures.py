"""From API objects and agents' answers to figures of nodes, GPUs, pods and owners."""

import json

import msgspec
import pytest

from alnair.kube.objects.wire import NodeSpecWire, NodeWire, ObjectMeta
from alnair.live.usage.figures import UNUSED, cluster_use
from alnair.live.usage.objects import Objects, SeenPod
from alnair.model import usage
from alnair.model.api_types import Workload
from alnair.model.usage import Digest, PodUsage

NOW = 1_800_000_000.0
_THEN = "2027-01-15T07:59:50Z"  # ten seconds before


def _node(name: str = "n1", util: float | None = 40.0, gpus: int = 2) -> NodeWire:
    static = {
        "v": 1,
        "t": _THEN,
        "gpus": [
            {"uuid": f"GPU-{name}-{i}", "index": i, "model": "H200", "memory_mib": 1000}
            for i in range(gpus)
        ],
    }
    annotations = {"ai.centaurus.io/gpu-static": json.dumps(static)}
    if util is not None:
        for index in range(gpus):
            load = {
                "v": 1,
                "t": _THEN,
                "uuid": f"GPU-{name}-{index}",
                "util": util,
                "memory_used_mib": 300,
            }
            annotations[f"ai.centaurus.io/gpu-{index}"] = json.dumps(load)
    return NodeWire(ObjectMeta(name=name, annotations=annotations))


def _pod(name: str, parts: list[dict[str, object]], **more: object) -> SeenPod:
    annotations = dict(more.pop("annotations", {}))  # type: ignore[call-overload]
    if parts:
        annotations["ai.centaurus.io/gpu-assignment"] = json.dumps(
            {"v": 1, "t": _THEN, "containers": {"c": parts}}
        )
    return msgspec.convert(
        {
            "metadata": {
                "name": name,
                "namespace": "team-a",
                "uid": f"uid-{name}",
                "annotations": annotations,
                **more,
            },
            "spec": {"nodeName": "n1", "containers": [{}]},
        },
        SeenPod,
    )


def _part(
    index: int, *, whole: bool = False, memory: int = 0, compute: int = 0
) -> dict[str, object]:
    return {
        "uuid": f"GPU-n1-{index}",
        "index": index,
        "memory_mib": memory,
        "compute": compute,
        "whole": whole,
    }


def _seen(*pods: SeenPod, node: NodeWire | None = None, then: str = _THEN) -> Objects:
    return Objects([node or _node()], list(pods), {"alnair-agent-n1": then})


def test_a_gpu_names_its_pods_and_its_load() -> None:
    found = cluster_use(
        _seen(_pod("a", [_part(0, memory=400, compute=30)]), _pod("b", [_part(0, memory=250)])),
        {},
        NOW,
    )
    first, second = found.gpus
    assert (first.util, first.memory_used_mib) == (40.0, 300)
    assert first.pods == ("team-a/a", "team-a/b")
    assert second.pods == ()
    assert [pod.gpus for pod in found.pods] == [0.3, 0.25]  # by compute, else by memory
    (node,) = found.nodes
    assert (node.gpus, node.free, node.util, node.pods) == (2, 1, 40.0, 2)


def test_a_silent_agent_s_figures_are_not_known() -> None:
    found = cluster_use(_seen(then="2027-01-15T07:58:00Z"), {}, NOW)
    assert [gpu.util for gpu in found.gpus] == [None, None]
    assert found.nodes[0].problem == "agent silent for 120 s"
    assert found.nodes[0].util is None


def test_what_a_silent_agent_wrote_on_pods_is_not_known_any_more() -> None:
    said = {"ai.centaurus.io/utilization": {"v": 1, "t": _THEN, "gpu": 98.9}}
    said["ai.centaurus.io/workload"] = {"v": 1, "t": _THEN, "phase": "training", "eta_s": 60}
    annotations = {key: json.dumps(value) for key, value in said.items()}
    pod = _pod("a", [_part(0, whole=True)], annotations=annotations)
    (before,) = cluster_use(_seen(pod), {}, NOW).pods
    assert (before.util, before.phase) == (98.9, "training")
    silent = cluster_use(_seen(pod, then="2027-01-15T07:58:00Z"), {}, NOW)
    (after,) = silent.pods
    assert (after.gpus, after.util, after.phase, after.eta_s) == (1.0, None, None, None)
    assert (silent.owners[0].used_gpus, silent.owners[0].wasted_gpus) == (None, None)


def test_a_cordoned_node_says_so_beside_its_free_gpus() -> None:
    node = _node()
    node.spec = NodeSpecWire(unschedulable=True)
    found = cluster_use(_seen(node=node), {}, NOW)
    assert (found.nodes[0].free, found.nodes[0].problem) == (2, "cordoned")
    silent = cluster_use(_seen(node=node, then="2026-01-01T00:00:00Z"), {}, NOW)
    assert silent.nodes[0].problem.startswith("cordoned; agent silent")


def test_leases_that_may_not_be_read_hide_nothing() -> None:
    found = cluster_use(Objects([_node()], [], None), {}, NOW)
    assert [gpu.util for gpu in found.gpus] == [40.0, 40.0]


def test_an_agent_s_word_of_now_goes_before_the_annotation() -> None:
    written = json.dumps({"v": 1, "t": _THEN, "gpu": 5.0, "idle_since": "2027-01-15T07:50:00Z"})
    pod = _pod("a", [_part(0, whole=True)], annotations={"ai.centaurus.io/utilization": written})
    (before,) = cluster_use(_seen(pod), {}, NOW).pods
    assert (before.util, before.idle_s, before.is_live) == (5.0, 600.0, False)
    metrics = {
        usage.GPU_UTIL: Digest(50, 90, 80, 60, last=70.0),
        usage.GPU_MEMORY_MIB: Digest(50, 90, 80, 60, last=512.0),
    }
    said = PodUsage(1, "n1", "team-a", "a", "uid-a", NOW - 60, metrics=metrics)
    (after,) = cluster_use(_seen(pod), {"uid-a": said}, NOW).pods
    assert (after.util, after.memory_mib, after.is_live) == (70.0, 512.0, True)
    assert after.cpu_cores is None


def test_an_annotation_that_cannot_be_read_is_not_known() -> None:
    pod = _pod("a", [_part(0, whole=True)], annotations={"ai.centaurus.io/utilization": "{"})
    assert cluster_use(_seen(pod), {}, NOW).pods[0].util is None


def test_a_whole_gpu_of_another_scheduler_s_pod_is_not_free() -> None:
    plain = msgspec.convert(
        {
            "metadata": {"name": "foreign", "namespace": "x", "uid": "u"},
            "spec": {
                "nodeName": "n1",
                "containers": [{"resources": {"limits": {"nvidia.com/gpu": "1"}}}],
            },
        },
        SeenPod,
    )
    found = cluster_use(_seen(plain), {}, NOW)
    assert found.nodes[0].free == 1
    assert found.pods[0].gpus == 1.0


def test_pods_without_gpus_are_not_shown() -> None:
    assert cluster_use(_seen(_pod("web", [])), {}, NOW).pods == ()


def test_owners_add_up_what_their_pods_hold_and_waste() -> None:
    owner = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "name": "train",
        "uid": "j",
        "controller": True,
    }
    pods = [
        _pod(
            name,
            [_part(index, whole=True)],
            ownerReferences=[owner],
            annotations={
                "ai.centaurus.io/utilization": json.dumps({"v": 1, "t": _THEN, "gpu": gpu})
            },
        )
        for name, index, gpu in (("a", 0, 90.0), ("b", 1, 10.0))
    ]
    (found,) = cluster_use(_seen(*pods), {}, NOW).owners
    assert found.owner == "Job/train"
    assert (found.pods, found.gpus, found.used_gpus) == (2, 2.0, 1.0)
    assert found.wasted_gpus == pytest.approx(1.0)


def test_the_owner_of_a_workers_pod_is_its_training_job() -> None:
    between = {"kind": "Job", "name": "elastictorchjob-train-workers", "controller": True}
    of_job = {"labels": {"ElasticTorchJob": "train", "role": "worker"}}
    worker = _pod("a", [_part(0, whole=True)], ownerReferences=[between], **of_job)
    (found,) = cluster_use(_seen(worker), {}, NOW).owners
    assert found.owner == "ElasticTorchJob/train"
    # What only bears the label is nobody's worker.
    (found,) = cluster_use(_seen(_pod("a", [_part(0, whole=True)], **of_job)), {}, NOW).owners
    assert found.owner == "Pod/a"


def test_a_namespace_hides_others_pods_and_not_who_holds_the_gpus() -> None:
    found = cluster_use(_seen(_pod("a", [_part(0, whole=True)])), {}, NOW, "team-b")
    assert found.pods == ()
    assert found.owners == ()
    assert found.gpus[0].pods == ("team-a/a",)
    assert found.nodes[0].free == 1


def test_a_slice_that_always_computes_wastes_nothing() -> None:
    written = json.dumps({"v": 1, "t": _THEN, "gpu": 30.0})
    part = _part(0, memory=400, compute=30)
    pod = _pod("a", [part], annotations={"ai.centaurus.io/utilization": written})
    found = cluster_use(_seen(pod), {}, NOW)
    assert found.pods[0].used_gpus == 0.3
    assert found.owners[0].wasted_gpus == 0.0


def test_what_is_left_of_a_training_goes_on_from_when_it_was_told() -> None:
    told = json.dumps({"v": 1, "t": _THEN, "phase": "training", "progress": 0.5, "eta_s": 100.0})
    pod = _pod("a", [_part(0, whole=True)], annotations={"ai.centaurus.io/workload": told})
    (found,) = cluster_use(_seen(pod), {}, NOW).pods
    assert (found.phase, found.progress, found.eta_s) == ("training", 0.5, 90.0)


def test_a_gpu_that_is_held_and_not_used_is_marked_with_an_agent_s_live_word_too() -> None:
    said = Workload(1, _THEN, type="idle", phase="idle", idle_since="2027-01-15T07:40:00Z")
    live = PodUsage(1, "n1", "team-a", "lazy", "uid-lazy", NOW - 3000, workload=said)
    pod = _pod("lazy", [_part(0, whole=True)])
    (found,) = cluster_use(_seen(pod), {"uid-lazy": live}, NOW).pods
    assert found.phase == UNUSED
    assert found.idle_s == pytest.approx(1200, abs=1)
