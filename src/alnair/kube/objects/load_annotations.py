"""Measured and expected GPU loads, from annotations; what cannot be is ignored, and named."""

from collections.abc import Mapping
from typing import Final

import msgspec

from alnair.kube.objects import wire
from alnair.kube.timestamps import timestamp
from alnair.model import api_types, names
from alnair.model.nodes import Gpu, GpuLoad

_load_decoder = msgspec.json.Decoder(api_types.GpuLoadAnnotation)
_expected_decoder = msgspec.json.Decoder(api_types.Expected)
_UNREADABLE: Final = (msgspec.MsgspecError, ValueError, RecursionError)
#: A GPU reports as used a little more than what it offers: the driver's own part.
_MEMORY_SLACK: Final = 1.05


def read_loads(
    annotations: Mapping[str, str], gpus: tuple[Gpu, ...]
) -> tuple[tuple[GpuLoad, ...], str]:
    """Return the loads of a node's GPUs, and which reports are ignored and why."""
    known = {gpu.uuid: gpu for gpu in gpus}
    loads: list[GpuLoad] = []
    ignored: list[str] = []
    for key, text in annotations.items():
        index = key.removeprefix(names.GPU_LOAD)
        if index == key or not index.isdecimal():
            continue
        try:
            loads.append(_load(text, known))
        except _UNREADABLE as error:
            ignored.append(f"annotation {key} is ignored: {error}")
    loads.sort(key=lambda load: load.uuid)
    return tuple(loads), "; ".join(sorted(ignored))


def _load(text: str, known: Mapping[str, Gpu]) -> GpuLoad:
    document = _load_decoder.decode(text)
    if document.v != 1:
        raise ValueError(f"version {document.v} is not known: expected 1")
    gpu = known.get(document.uuid)
    if gpu is None:
        raise ValueError(f"the node has no GPU {document.uuid}")
    if document.memory_used_mib > gpu.memory_mib * _MEMORY_SLACK:
        raise ValueError(
            f"memory_used_mib {document.memory_used_mib} is more than the {gpu.memory_mib} MiB "
            "that the GPU has"
        )
    measured = timestamp(document.t)
    if not measured:
        raise ValueError(f"t {document.t!r} is not a time: write it as 2026-01-31T12:00:00Z")
    return GpuLoad(gpu.uuid, document.util, document.memory_used_mib, measured)


class Expectation(msgspec.Struct, frozen=True):
    """What a pod is expected to need; 0 is not known. `ignored` says why nothing could be read."""

    util: float = 0.0
    memory_mib: int = 0
    duration_s: float = 0.0
    ignored: str = ""


NOTHING: Final = Expectation()


def read_expected(annotations: Mapping[str, str]) -> Expectation:
    """Return what the pod's annotation expects of it."""
    text = annotations.get(names.EXPECTED)
    if not text:
        return NOTHING
    try:
        document = _expected_decoder.decode(text)
        if document.v != 1:
            raise ValueError(f"version {document.v} is not known: expected 1")
    except _UNREADABLE as error:
        return Expectation(ignored=f"annotation {names.EXPECTED} is ignored: {error}")
    return Expectation(document.util or 0.0, document.memory_mib or 0, document.duration_s or 0.0)


def agent_lease(annotations: Mapping[str, str], node: str) -> str:
    """Return the name of the Lease that the node's agent renews."""
    return annotations.get(names.AGENT_LEASE) or names.AGENT_LEASE_PREFIX + node


def project_agent_lease(lease: wire.LeaseWire) -> float:
    """Return when the lease was renewed last, seconds since the epoch; 0 if never."""
    return timestamp(lease.spec.renew_time or "") if lease.spec else 0.0
