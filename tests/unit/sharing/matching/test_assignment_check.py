"""What makes an assignment one that the pod's request does not explain."""

from collections.abc import Mapping, Sequence

import pytest

from alnair.model.api_types import AssignedGpu
from alnair.model.gpu_demand import ContainerGpus, gpu_demand
from alnair.sharing.matching.assignment_check import assignment_problem
from kit.node_state import asks, node_gpus, slice_of, whole_gpu

Given = Mapping[str, Sequence[AssignedGpu]]


def problem(given: Given, *containers: ContainerGpus) -> str:
    demand = gpu_demand(containers, {})
    assert demand is not None
    assert not demand.problem
    return assignment_problem(demand, given, {gpu.uuid: gpu for gpu in node_gpus(3)})


INIT = asks("load", whole=1, init=True)
SIDECAR = asks("side", whole=1, sidecar=True)


def test_what_was_asked_for_has_no_problem() -> None:
    assert not problem(
        {"main": [whole_gpu(0), whole_gpu(1)], "watch": [slice_of(2, 500, 10)]},
        asks(whole=2),
        asks("watch", memory=500, compute=10),
    )


def test_the_gpus_of_an_init_container_come_again_and_those_of_a_sidecar_do_not() -> None:
    again = {"load": [whole_gpu(0)], "main": [whole_gpu(0)]}
    assert not problem(again, INIT, asks(whole=1))
    twice = {"side": [whole_gpu(0)], "main": [whole_gpu(0)]}
    assert "1 whole GPUs, but the pod asks for 2" in problem(twice, SIDECAR, asks(whole=1))


@pytest.mark.parametrize(
    ("given", "containers", "says"),
    [
        (
            {"main": [whole_gpu(0)]},
            [asks(whole=2)],
            "container 'main' asks for 2 whole GPUs, but gets the whole GPU GPU-0",
        ),
        ({"main": [whole_gpu(0), whole_gpu(0)]}, [asks(whole=2)], "asks for 2 whole GPUs"),
        ({"main": [slice_of(0, 500), slice_of(0, 500)]}, [asks(memory=500)], "500 MiB and 0 %"),
        (
            {"main": [AssignedGpu("MIG-0", 0, 500, 0, whole=False)]},
            [asks(memory=500)],
            "MIG-0 is a MIG device, which no assignment names, and of which there are no slices",
        ),
        (
            {"main": [slice_of(0, 500)], "other": [slice_of(0, 500)]},
            [asks(memory=500)],
            "it names the container 'other', which asks for no GPU",
        ),
        (
            {"main": [whole_gpu(0)], "watch": [slice_of(0, 500)]},
            [asks(whole=1), asks("watch", memory=500)],
            "GPU GPU-0 is given whole and in slices",
        ),
        (
            {"load": [whole_gpu(0)], "main": [whole_gpu(1)]},
            [INIT, asks(whole=1)],
            "it names 2 whole GPUs, but the pod asks for 1",
        ),
        (
            {"main": [whole_gpu(0), whole_gpu(1)], "b": [whole_gpu(1)], "load": [whole_gpu(2)]},
            [asks("load", whole=1, init=True), asks(whole=2), asks("b", whole=1)],
            "GPU GPU-1 is given whole to two containers that run at once",
        ),
    ],
)
def test_what_was_not_asked_for_is_said(
    given: Given, containers: Sequence[ContainerGpus], says: str
) -> None:
    assert says in problem(given, *containers)
