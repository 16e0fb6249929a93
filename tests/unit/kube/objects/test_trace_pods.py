"""Trace pods as objects."""

import msgspec

from alnair.kube.objects.trace_pods import Asking, compute_of_share, manifest, memory_of_share
from alnair.kube.objects.wire import PodWire
from alnair.model.gpu_models import MODELS
from alnair.traces.arrivals import Arrival
from alnair.traces.openb import TracePod

HERE = ["T4", "G3", "V100M32"]


def test_a_share_asks_for_its_part_of_the_smallest_gpu_it_may_run_on() -> None:
    pod = TracePod("p", 1, 1, 1, 460)
    assert memory_of_share(pod, HERE) == 460 * MODELS["T4"].memory_mib // 1000
    typed = TracePod("p", 1, 1, 1, 460, ("G3", "V100M32"))
    assert memory_of_share(typed, HERE) == 460 * MODELS["V100M32"].memory_mib // 1000


def test_a_model_that_no_node_has_counts_only_if_nothing_else_is_allowed() -> None:
    assert memory_of_share(TracePod("p", 1, 1, 1, 500, ("P100", "G3")), HERE) == 40960
    assert memory_of_share(TracePod("p", 1, 1, 1, 500, ("P100",)), HERE) == 8192


def test_shares_that_fill_a_gpu_fit_its_memory_on_every_model() -> None:
    for model in HERE:
        for shares in ([810, 190], [330, 330, 340], [50] * 20):
            asked = sum(memory_of_share(TracePod("p", 1, 1, 1, s), HERE) for s in shares)
            assert asked <= MODELS[model].memory_mib


def test_a_tiny_share_asks_for_the_least_memory() -> None:
    assert memory_of_share(TracePod("p", 1, 1, 1, 1), HERE) == 64


def test_compute_is_in_percent_rounded_up() -> None:
    assert compute_of_share(TracePod("p", 1, 1, 1, 460)) == 46
    assert compute_of_share(TracePod("p", 1, 1, 1, 461)) == 47


def test_whole_gpus_a_share_and_none_become_limits() -> None:
    def limits(pod: TracePod) -> object:
        made = manifest(Arrival(pod.name, pod), "openb", "alnair-scheduler", HERE)
        assert made["spec"]["schedulerName"] == "alnair-scheduler"
        return made["spec"]["containers"][0]["resources"]

    assert limits(TracePod("p", 1500, 2048, 4, 1000)) == {
        "requests": {"cpu": "1500m", "memory": "2048Mi", "nvidia.com/gpu": "4"},
        "limits": {"nvidia.com/gpu": "4"},
    }
    assert limits(TracePod("p", 100, 0, 1, 500)) == {
        "requests": {"cpu": "100m", "alnair/vgpu-memory": "7680", "alnair/vgpu-compute": "50"},
        "limits": {"alnair/vgpu-memory": "7680", "alnair/vgpu-compute": "50"},
    }
    assert limits(TracePod("p", 100, 1, 0, 0)) == {
        "requests": {"cpu": "100m", "memory": "1Mi"},
        "limits": {},
    }


def test_models_become_a_required_affinity_and_a_copy_has_its_own_name() -> None:
    pod = TracePod("p", 1, 1, 1, 1000, ("G3", "T4"), "T4|G3")
    made = manifest(Arrival("p-tuned-3", pod), "openb", "x", HERE)
    assert made["metadata"]["name"] == "p-tuned-3"
    terms = made["spec"]["affinity"]["nodeAffinity"][
        "requiredDuringSchedulingIgnoredDuringExecution"
    ]["nodeSelectorTerms"]
    expression = {"key": "nvidia.com/gpu.product", "operator": "In", "values": ["G3", "T4"]}
    assert terms == [{"matchExpressions": [expression]}]


def test_a_pod_asks_for_the_same_after_the_api_server_has_rewritten_it() -> None:
    asking = Asking()
    wanted = manifest(
        Arrival("p", TracePod("p", 2000, 2048, 1, 500, ("T4",))), "openb", "alnair-scheduler", HERE
    )
    body = msgspec.json.decode(msgspec.json.encode(wanted))
    (container,) = body["spec"]["containers"]
    container["resources"]["requests"] |= {"cpu": "2", "memory": "2Gi", "alnair/vgpu": "1"}
    body["spec"]["tolerations"] = [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]
    assert asking.of(msgspec.convert(body, PodWire)) == asking.of_manifest(wanted)
    for other in (
        TracePod("p", 2001, 2048, 1, 500, ("T4",)),
        TracePod("p", 2000, 2048, 1, 501, ("T4",)),
        TracePod("p", 2000, 2048, 1, 500, ("G3",)),
        TracePod("p", 2000, 2048, 0, 0),
    ):
        made = manifest(Arrival("p", other), "openb", "alnair-scheduler", HERE)
        assert asking.of_manifest(made) != asking.of_manifest(wanted)
