"""The Job of a workload that is measured, and which node it is for."""

from typing import Any

import msgspec
import pytest

from alnair.live.pairing.pair_job import LABEL, JobOptions, pair_job
from alnair.live.pairing.same_gpu import gpus_of
from alnair.model import names

OPTIONS = JobOptions(
    namespace="team", node="gpu-1", image="team/train:1", memory_mib=8000, mode="time-sliced"
)


def container(job: dict[str, Any]) -> dict[str, Any]:
    (found,) = job["spec"]["template"]["spec"]["containers"]
    return dict(found)


def test_a_job_asks_for_a_slice_on_its_node_and_ends_whoever_is_left() -> None:
    job = pair_job("a-0", "a", ("python", "train.py"), 0, OPTIONS)
    spec = job["spec"]["template"]["spec"]
    assert container(job)["resources"] == {"limits": {names.VGPU_MEMORY: "8000"}}
    assert container(job)["command"] == ["python", "train.py"]
    assert spec["nodeSelector"] == {"kubernetes.io/hostname": "gpu-1"}
    assert spec["schedulerName"] == names.SCHEDULER
    assert (job["spec"]["activeDeadlineSeconds"], job["spec"]["backoffLimit"]) == (600, 0)
    assert job["spec"]["ttlSecondsAfterFinished"] > 0
    assert (
        job["metadata"]["labels"] == job["spec"]["template"]["metadata"]["labels"] == {LABEL: "a"}
    )


def test_each_mode_is_asked_for_as_a_user_would() -> None:
    limited = msgspec.structs.replace(OPTIONS, mode="limited", percent=(30, 60))
    for which, percent in ((0, "30"), (1, "60")):
        asked = container(pair_job("a", "a", ("x",), which, limited))["resources"]["limits"]
        assert asked[names.VGPU_COMPUTE] == percent
    through = pair_job("a", "a", ("x",), 0, msgspec.structs.replace(OPTIONS, mode="mps"))
    annotations = through["spec"]["template"]["metadata"]["annotations"]
    assert annotations == {names.VGPU_ISOLATION: "mps"}


@pytest.mark.parametrize("text", [None, "", "{", '{"v": 1}'])
def test_a_pod_that_does_not_say_its_gpus_has_none_that_are_known(text: str | None) -> None:
    assert gpus_of({"metadata": {"annotations": {names.GPU_ASSIGNMENT: text}}}) == set()
    assert gpus_of({"metadata": {}}) == set()
