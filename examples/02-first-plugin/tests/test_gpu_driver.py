"""GpuDriver on its own, with alnair's test kit."""

from gpu_driver import LABEL, GpuDriver, GpuDriverArguments

from alnair.testing import PluginBench, node, pod

NODES = [
    node("old", gpus=2, labels={LABEL: "470"}),
    node("new", gpus=2, labels={LABEL: "550"}),
    node("newest", gpus=2, labels={LABEL: "570"}),
    node("silent", gpus=2),
]
TRAIN = pod("train", limits={"nvidia.com/gpu": "1"})
WEB = pod("web")


def bench() -> PluginBench:
    return PluginBench(GpuDriver(GpuDriverArguments(minimum=535)), NODES)


def test_old_and_unknown_drivers_are_refused_with_a_reason() -> None:
    reason = ["node(s) have a GPU driver older than 535"]
    assert bench().refused(TRAIN) == {"old": reason, "silent": reason}


def test_the_newest_driver_is_best() -> None:
    assert bench().scores(TRAIN) == {"new": 96, "newest": 100}
    assert bench().best(TRAIN) == "newest"


def test_pods_without_gpus_may_go_anywhere() -> None:
    assert bench().refused(WEB) == {}


def test_it_keeps_the_contract_of_plugins() -> None:
    bench().check([TRAIN, WEB])
