"""Reports of topology exporters, and what of pods decides about zones."""

from typing import Any

import msgspec
import pytest

from alnair.kube.objects import wire
from alnair.kube.objects.numa_topology import project_topology
from alnair.kube.objects.numa_topology_wire import NodeResourceTopologyWire
from alnair.kube.objects.pod_projection import PodProjector
from alnair.model.numa_topology import SINGLE_NUMA, NumaTopology, NumaZone
from alnair.model.workload import ContainerPart, PodSpec


def report(**fields: Any) -> NumaTopology:
    document = {"metadata": {"name": "n"}, **fields}
    return project_topology(msgspec.convert(document, NodeResourceTopologyWire))


def attributes(**values: str) -> list[dict[str, str]]:
    return [{"name": name, "value": value} for name, value in values.items()]


def zone(name: str, kind: str = "Node", **available: str) -> dict[str, Any]:
    resources = [{"name": n, "available": a, "capacity": "9"} for n, a in available.items()]
    return {"name": name, "type": kind, "resources": resources}


def test_zones_come_by_their_number_with_what_is_available() -> None:
    costs = [{"name": "node-0", "value": 12}, {"name": "other", "value": 1}]
    found = report(
        zones=[
            {**zone("node-10", cpu="1500m", memory="1Ki"), "costs": costs},
            zone("node-2", cpu="1"),
            zone("node-64", cpu="1"),
            zone("socket-0", cpu="1"),
            zone("node-1", "Core", cpu="1"),
        ]
    )
    assert found.zones == (
        NumaZone(2, (("cpu", 1000),)),
        NumaZone(10, (("cpu", 1500), ("memory", 1024)), ((0, 12),)),
    )


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        ({}, ("none", False, 8)),
        ({"topologyPolicies": ["SingleNUMANodePodLevel"]}, (SINGLE_NUMA, True, 8)),
        ({"topologyPolicies": ["RestrictedContainerLevel", "None"]}, ("restricted", False, 8)),
        (
            {
                "topologyPolicies": ["SingleNUMANodePodLevel"],
                "attributes": attributes(
                    topologyManagerPolicy="best-effort", topologyManagerScope="container"
                ),
            },
            ("best-effort", False, 8),
        ),
        (
            {
                "attributes": attributes(
                    topologyManagerPolicy="strict", topologyManagerMaxNUMANodes="5000"
                )
            },
            ("none", False, 1024),
        ),
        ({"attributes": attributes(topologyManagerMaxNUMANodes="0")}, ("none", False, 8)),
    ],
)
def test_attributes_go_before_deprecated_policies(
    fields: dict[str, Any], want: tuple[str, bool, int]
) -> None:
    found = report(**fields)
    assert (found.policy, found.pod_scope, found.max_zones) == want


def test_a_report_is_as_old_as_its_last_write() -> None:
    times = [{"time": "2026-11-21T12:00:05Z"}, {"time": "2026-11-21T12:00:02Z"}, {}]
    metadata = {"name": "n", "creationTimestamp": "2026-11-21T12:00:00Z", "managedFields": times}
    assert report(metadata=metadata).reported % 60 == 5
    assert report().reported == 0


def test_fingerprints_are_attributes_or_an_annotation() -> None:
    old = {"name": "n", "annotations": {"topology.node.k8s.io/fingerprint": "pfp0v001a"}}
    assert report(metadata=old).fingerprint == "pfp0v001a"
    found = report(
        metadata=old,
        attributes=attributes(
            nodeTopologyPodsFingerprint="pfp0v001b",
            nodeTopologyPodsFingerprintMethod="with-exclusive-resources",
        ),
    )
    assert (found.fingerprint, found.exclusive_only) == ("pfp0v001b", True)


def test_an_unreadable_report_is_a_problem_of_its_zone() -> None:
    assert (
        "zone node-0: 'much' is not a quantity"
        in report(zones=[zone("node-0", cpu="much")]).problem
    )


def spec(*containers: dict[str, Any], **rest: Any) -> PodSpec:
    named = [{"name": f"c{i}", "resources": c} for i, c in enumerate(containers)]
    document = {"metadata": {"name": "p"}, "spec": {"containers": named, **rest}}
    return PodProjector()(msgspec.convert(document, wire.PodWire)).spec


BOTH = {"cpu": "1", "memory": "1Gi"}


@pytest.mark.parametrize(
    ("containers", "rest", "guaranteed"),
    [
        ([{"limits": BOTH}], {}, True),
        ([{"limits": BOTH, "requests": {"cpu": "1000m"}}], {}, True),
        ([{"limits": BOTH, "requests": {"cpu": "500m"}}], {}, False),
        ([{"limits": BOTH}, {"limits": {"cpu": "1"}}], {}, False),
        ([{"requests": BOTH}], {}, False),
        ([{}], {}, False),
        ([{}], {"resources": {"limits": BOTH}}, True),
        ([{"limits": BOTH}], {"initContainers": [{"name": "i"}]}, False),
    ],
)
def test_pods_whose_limits_are_their_requests_are_guaranteed(
    containers: list[dict[str, Any]], rest: dict[str, Any], guaranteed: bool
) -> None:
    assert spec(*containers, **rest).guaranteed == guaranteed


def test_containers_are_kept_only_where_the_sum_does_not_tell() -> None:
    assert spec({"limits": BOTH}).containers == ()
    one = ContainerPart((("cpu", 1000), ("memory", 2**30)))
    assert spec({"limits": BOTH}, {"limits": BOTH}).containers == (one, one)
    assert spec({"limits": BOTH}, overhead={"cpu": "1"}).containers == (one,)
    init = [{"name": "i", "resources": {"limits": BOTH}, "restartPolicy": "Always"}]
    sidecar = ContainerPart(one.requests, init=True, sidecar=True)
    assert spec({}, initContainers=init).containers == (sidecar, ContainerPart())
