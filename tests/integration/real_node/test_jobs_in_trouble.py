"""Training jobs that a real kubelet cannot start, or that end at once: their state says why."""

from typing import Any, Final

import pytest

from alnair.kube.client import Client
from alnair.kube.crds.elastic_crds import TRAINING_JOBS
from alnair.kube.resources import PODS, Manifest
from alnair.local.real_node import images
from alnair.model import names
from kit import training_jobs as jobs
from kit.live.real_pods import NAMESPACE, until

TORCH: Final = {one.kind: one.resource() for one in TRAINING_JOBS}["ElasticTorchJob"]


def job(name: str, **workers: Any) -> Manifest:
    """A job of one worker on the real node, which is not started again."""
    where = {"nodeSelector": {names.REAL_NODE: "true"}, "imagePullPolicy": "IfNotPresent"}
    given = {"image": images.PYTHON, "gpusPerWorker": 0, **where, **workers}
    return jobs.changed(jobs.torch(name, 1, 1, **given), "spec.runPolicy.backoffLimit", 0)


def mounted(volume: Manifest) -> Manifest:
    return {
        "volumes": [{"name": "data", **volume}],
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }


ABSENT: Final[list[tuple[Manifest, str, str, str]]] = [
    (
        # Refused at once; a name that is nowhere costs 50 s of DNS.
        job("pulled", image="127.0.0.1:1/none:1"),
        "Running",
        "ImagePullBackOff",
        "spec.workersSpec.image",
    ),
    (
        job("secret", **mounted({"secret": {"secretName": "absent"}})),
        "Running",
        "SecretMissing",
        'secret "absent" not found: spec.workersSpec.volumes',
    ),
    (
        job("map", envFrom=[{"configMapRef": {"name": "absent"}}]),
        "Running",
        "ConfigMapMissing",
        'configmap "absent" not found: spec.workersSpec.volumes',
    ),
    # The image has no torchrun.
    (job("crashes"), "Failed", "", "see kubectl logs job/elastictorchjob-crashes-workers"),
]


@pytest.mark.usefixtures("cluster")
async def test_what_a_kubelet_cannot_start_is_told_with_the_field_and_what_crashes_has_failed(
    client: Client,
) -> None:
    found: dict[str, Any] = {}

    async def all_told() -> bool:
        told = []
        for made, kind, reason, words in ABSENT:
            name = made["metadata"]["name"]
            status = (await client.get(TORCH, name, NAMESPACE)).get("status") or {}
            said = [one for one in status.get("conditions") or () if one["type"] == kind]
            found[name] = said
            told.append(
                any(
                    one["status"] == ("True" if kind == "Failed" else "False")
                    and one["reason"].startswith(reason)
                    and words in one["message"]
                    for one in said
                )
            )
        return all(told)

    try:
        for made, *_ in ABSENT:
            await client.create(TORCH, made, NAMESPACE)
        await until(all_told, "all four are told")
    finally:
        print(found)
        for made, *_ in ABSENT:
            await client.delete(TORCH, made["metadata"]["name"], NAMESPACE)

    async def gone() -> bool:
        return not (await client.list(PODS, NAMESPACE, label_selector="ElasticTorchJob")).items

    await until(gone, "no pod is left")
