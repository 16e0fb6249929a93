"""Storage objects as the API server sends them, and what scheduling keeps of them."""

from typing import Any

import msgspec
import pytest

from alnair.kube.objects import storage, wire
from alnair.kube.objects.disks import pod_volumes
from alnair.kube.objects.pod_projection import PodProjector
from alnair.model.volumes import AWS_EBS, CLAIM, EPHEMERAL, GCE_PD, RBD, Disk
from alnair.model.workload import LabelSelector, PodVolume, Requirement, Term

META = {"name": "x", "namespace": "n", "uid": "u"}


def claim(spec: dict[str, Any], **annotations: str) -> Any:
    """A projected claim."""
    raw = {"metadata": {**META, "annotations": annotations}, "spec": spec}
    return storage.project_claim(msgspec.convert(raw, storage.ClaimWire))


def volume(spec: dict[str, Any], **labels: str) -> Any:
    """A projected persistent volume."""
    raw = {"metadata": {**META, "labels": labels}, "spec": spec}
    return storage.project_volume(msgspec.convert(raw, storage.PersistentVolumeWire))


def pod(*volumes: dict[str, Any]) -> wire.PodWire:
    """A pod with these volumes."""
    raw = {"metadata": META, "spec": {"containers": [], "volumes": list(volumes)}}
    return msgspec.convert(raw, wire.PodWire)


def test_a_claim_is_bound_when_both_sides_say_so() -> None:
    assert not claim({"volumeName": "v"}).bound
    assert claim({"volumeName": "v"}, **{storage.BIND_COMPLETED: "yes"}).bound
    assert not claim({}, **{storage.BIND_COMPLETED: "yes"}).bound


def test_the_old_annotation_names_the_class_before_the_field_does() -> None:
    old = "volume.beta.kubernetes.io/storage-class"
    assert claim({"storageClassName": "new"}).storage_class == "new"
    assert claim({"storageClassName": "new"}, **{old: "old"}).storage_class == "old"


@pytest.mark.parametrize(
    ("amount", "size"), [("1Gi", 1 << 30), ("1500m", 2), (7, 7), ("much", 0), (None, 0)]
)
def test_a_claims_size_is_in_bytes(amount: Any, size: int) -> None:
    assert claim({"resources": {"requests": {"storage": amount} if amount else {}}}).size == size


def test_a_volumes_nodes_and_a_claims_selector_are_requirements() -> None:
    expression = {"key": "k", "operator": "In", "values": ["a"]}
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    wanted = Requirement("k", "In", ("a",))
    assert volume({"nodeAffinity": affinity}).nodes == (Term((wanted,)),)
    assert volume({}).nodes is None
    selector = {"matchLabels": {"k": "a"}}
    assert claim({"selector": selector}).selector == LabelSelector((wanted,))
    assert claim({}).selector is None


@pytest.mark.parametrize(
    ("spec", "disk"),
    [
        ({"csi": {"driver": "d", "volumeHandle": "h"}}, Disk("d", "h")),
        ({"awsElasticBlockStore": {"volumeID": "aws://z/vol-1"}}, Disk(AWS_EBS, "vol-1")),
        (
            {"gcePersistentDisk": {"pdName": "p"}},
            Disk(GCE_PD, "projects/UNSPECIFIED/zones/z1/disks/p"),
        ),
        ({"hostPath": {"path": "/"}}, None),
        ({"iscsi": {"iqn": "q"}}, None),
    ],
)
def test_a_volumes_disk_has_the_name_that_its_driver_gives_it(
    spec: dict[str, Any], disk: Disk | None
) -> None:
    assert volume(spec, **{"topology.kubernetes.io/zone": "z1"}).disk == disk


def test_only_volumes_that_can_keep_a_pod_from_a_node_count() -> None:
    found = pod_volumes(
        pod(
            {"name": "a", "configMap": {"name": "c"}},
            {"name": "b", "persistentVolumeClaim": {"claimName": "data"}},
            {"name": "c", "ephemeral": {"volumeClaimTemplate": {"spec": {}}}},
            {"name": "d", "rbd": {"monitors": ["m"], "image": "i", "readOnly": True}},
            {"name": "e", "projected": {"sources": []}},
        )
    )
    assert found == (
        PodVolume(CLAIM, "data"),
        PodVolume(EPHEMERAL, "x-c", pod="x", uid="u"),
        PodVolume(RBD, "rbd/i", read_only=True, monitors=("m",)),
    )


def test_pods_without_such_volumes_share_their_spec() -> None:
    project = PodProjector()
    token = {"name": "kube-api-access-1", "projected": {"sources": []}}
    other = {"name": "kube-api-access-2", "projected": {"sources": []}}
    assert project(pod(token)).spec is project(pod(other)).spec
    data = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    assert project(pod(data)).spec is project(pod(data, token)).spec


@pytest.mark.parametrize(
    ("fields", "largest"),
    [
        ({"capacity": "2Gi"}, 2 << 30),
        ({"capacity": "2Gi", "maximumVolumeSize": "1Gi"}, 1 << 30),
        ({}, -1),
    ],
)
def test_the_largest_volume_counts_before_the_capacity(
    fields: dict[str, Any], largest: int
) -> None:
    raw = {"metadata": META, "storageClassName": "s", **fields}
    found = storage.project_capacity(msgspec.convert(raw, storage.CapacityWire))
    assert (found.largest, found.nodes) == (largest, None)


def test_limits_are_those_that_a_driver_states() -> None:
    drivers = [{"name": "a", "nodeID": "x", "allocatable": {"count": 3}}, {"name": "b"}]
    raw = {"metadata": META, "spec": {"drivers": drivers}}
    found = storage.project_csi_node(msgspec.convert(raw, storage.CsiNodeWire))
    assert found.limits == (("a", 3),)
