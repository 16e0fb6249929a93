"""What is read of a pod beyond what decides about GPUs: its work, as its specification tells it."""

from collections.abc import Mapping
from typing import Any

import msgspec

from alnair.kube.objects import wire
from alnair.model.job_facts import Declared
from alnair.profiler.job_facts.declared import Container, Volume, declared


class _Variable(msgspec.Struct, gc=False):
    name: str = ""
    value: str | None = None


class _Mount(msgspec.Struct, rename="camel", gc=False):
    name: str = ""
    mount_path: str = ""


class _Container(wire.Container, rename="camel"):
    command: list[str] | None = None
    args: list[str] | None = None
    env: list[_Variable] | None = None
    volume_mounts: list[_Mount] | None = None


class _Volume(wire.VolumeWire, rename="camel"):
    host_path: dict[str, Any] | None = None
    nfs: dict[str, Any] | None = None
    csi: dict[str, Any] | None = None
    empty_dir: dict[str, Any] | None = None


class SpecWithWork(wire.PodSpecWire, rename="camel"):
    """A pod's specification with commands, variables, mounts and volumes."""

    containers: list[_Container] | None = None  # type: ignore[assignment]
    volumes: list[_Volume] | None = None  # type: ignore[assignment]


def pod_work(metadata: wire.ObjectMeta, spec: SpecWithWork) -> Declared:
    """Return what a pod's specification says of model and input."""
    containers = [
        Container(
            one.name,
            (*(one.command or ()), *(one.args or ())),
            {each.name: each.value for each in one.env or () if each.value},
            {each.name: each.mount_path for each in one.volume_mounts or ()},
        )
        for one in spec.containers or ()
    ]
    volumes = (found for one in spec.volumes or () if (found := _volume(one)) is not None)
    return declared(metadata.annotations or {}, metadata.labels or {}, containers, volumes)


def _volume(one: _Volume) -> Volume | None:
    if one.persistent_volume_claim is not None:
        return Volume(one.name, "persistentVolumeClaim", one.persistent_volume_claim.claim_name)
    if one.ephemeral is not None:
        return Volume(one.name, "ephemeral")
    for kind, said, keys in (
        ("hostPath", one.host_path, ("path",)),
        ("nfs", one.nfs, ("server", "path")),
        ("csi", one.csi, ("driver",)),
        ("emptyDir", one.empty_dir, ()),
    ):
        if said is not None:
            return Volume(one.name, kind, _joined(said, keys))
    return None


def _joined(said: Mapping[str, Any], keys: tuple[str, ...]) -> str:
    return ":".join(str(said[key]) for key in keys if key in said)
