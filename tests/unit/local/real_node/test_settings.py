"""Every address and name of a real node follows from its cluster and its slot."""

import ipaddress
from pathlib import Path

import pytest

from alnair.local.layout import Layout
from alnair.local.real_node.settings import SLOTS, NodeSettings


def node(slot: int = 0, name: str = "one", root: str = "/clusters") -> NodeSettings:
    return NodeSettings(Layout(Path(root), name), slot, 2, "h100", 16400)


def test_no_two_slots_share_an_address() -> None:
    networks = []
    for slot in range(SLOTS):
        one = node(slot)
        link = ipaddress.ip_network(f"{one.host_address}/30", strict=False)
        assert ipaddress.ip_address(one.address) in link
        networks += [link, ipaddress.ip_network(one.pod_cidr)]
    for i, first in enumerate(networks):
        assert not any(first.overlaps(other) for other in networks[i + 1 :])


@pytest.mark.parametrize("other", [node(name="two"), node(root="/elsewhere")])
def test_clusters_are_told_apart_by_their_folder(other: NodeSettings) -> None:
    assert node().link != other.link
    assert node().cgroup != other.cgroup


def test_the_kernel_takes_the_name_of_the_device_and_of_its_peer() -> None:
    assert len(node(name="a" * 40).link + "p") <= 15
