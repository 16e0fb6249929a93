"""What `alnair demo --real-node` says of the pods of the example."""

import msgspec
import pytest
import yaml

from alnair.cli import real_node_demo
from alnair.cli.real_node_demo import Tenant
from alnair.kube.objects import wire
from alnair.kube.objects.pod_spec_projection import pod_spec

GPU = "GPU-0"
TRAINING = Tenant("training", 40960, 60, GPU, 40960, 60.2, "")
INFERENCE = Tenant("inference", 8192, 30, GPU, 8192, 29.9, "CUDA_ERROR_OUT_OF_MEMORY")


def changed(tenant: Tenant, **fields: object) -> Tenant:
    return msgspec.structs.replace(tenant, **fields)


def test_all_is_well_where_each_has_its_slice(capsys: pytest.CaptureFixture[str]) -> None:
    assert real_node_demo.show([TRAINING, INFERENCE]) == ""
    said = capsys.readouterr().out.splitlines()
    assert said[1].split() == ["training", "40960", "60", GPU, "40960", "60.2"]
    assert said[-1].endswith("and read: CUDA_ERROR_OUT_OF_MEMORY")


@pytest.mark.parametrize(
    ("training", "inference", "problem"),
    [
        (TRAINING, changed(INFERENCE, refused=""), "nobody was refused memory"),
        (TRAINING, changed(INFERENCE, gpu="GPU-1"), "the pods are on different GPUs"),
        (changed(TRAINING, shown_mib=81559), INFERENCE, "training sees 81559 MiB and not 40960"),
        (TRAINING, changed(INFERENCE, percent=98.0), "inference had 98.0 % of the GPU's time"),
    ],
)
def test_what_is_not_as_it_should_be_is_said(
    training: Tenant, inference: Tenant, problem: str
) -> None:
    assert real_node_demo.show([training, inference]) == problem


def test_the_pods_of_the_example_fit_on_one_gpu_together() -> None:
    demands = []
    for document in yaml.safe_load_all(real_node_demo.EXAMPLE.read_text()):
        pod = msgspec.convert(document, wire.PodWire, strict=False)
        demand = pod_spec(pod.spec, {}).gpu
        assert demand is not None
        assert not demand.problem
        demands.append(demand)
    assert sum(demand.compute for demand in demands) <= 100
    assert [(demand.memory_mib, demand.compute) for demand in demands] == [(40960, 60), (8192, 30)]
