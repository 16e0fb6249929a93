"""A node's resources by NUMA zone, as an exporter reports them (NodeResourceTopology)."""

from typing import Final

import msgspec

#: The Topology Manager policy under which a container, or a pod, must fit into one zone.
SINGLE_NUMA: Final = "single-numa-node"
#: Distance between zones that say nothing of it: "unknown" in ACPI's SLIT.
FAR: Final = 255


class NumaZone(msgspec.Struct, frozen=True, gc=False):
    """One NUMA zone: what is available in it, in base units, and how far other zones are."""

    id: int
    available: tuple[tuple[str, int], ...] = ()
    #: Zone id → distance; pairs.
    costs: tuple[tuple[int, int], ...] = ()


class NumaTopology(msgspec.Struct, frozen=True):
    """The zones of a node, by ascending id, and how its kubelet aligns with them."""

    zones: tuple[NumaZone, ...] = ()
    #: none, best-effort, restricted or single-numa-node.
    policy: str = "none"
    #: Pods are aligned as a whole; else each of their containers is.
    pod_scope: bool = False
    max_zones: int = 8
    #: When the report was written, seconds since the epoch; 0 if that is not known.
    reported: float = 0.0
    #: The fingerprint of the pods that it counts; empty if the exporter writes none.
    fingerprint: str = ""
    #: The fingerprint is that of pods with cores, memory or devices of their own.
    exclusive_only: bool = False
    #: Why the report could not be read, for people; empty if it could.
    problem: str = ""
