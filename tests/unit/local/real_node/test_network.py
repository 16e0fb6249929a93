"""A node's network meets no other, and everything of it hangs on one device."""

import json
import shlex
from pathlib import Path

import pytest

from alnair.local.errors import LocalClusterError
from alnair.local.layout import Layout
from alnair.local.real_node import network
from alnair.local.real_node.settings import SLOTS, NodeSettings

NODE = NodeSettings(Layout(Path("/clusters"), "one"), 3, 2, "h100", 16400)
#: Where the search begins for the node behind `aln1`.
FIRST = 45


@pytest.fixture
def ip(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Stands in for `ip`, which says what is in this file."""
    said = tmp_path / "said"
    program = tmp_path / "ip"
    program.write_text(f"#!/bin/sh\ncat {said}\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    return said


def routes(*found: tuple[str, str]) -> str:
    return json.dumps([{"dst": destination, "dev": device} for destination, device in found])


def test_the_next_network_that_nobody_uses_is_taken(ip: Path) -> None:
    ip.write_text(routes(("default", "eth0"), ("192.168.0.0/16", "eth0")))
    assert network.free_slot("aln1", None, []) == FIRST
    assert network.free_slot("aln1", None, [FIRST, FIRST + 1]) == FIRST + 2
    assert network.free_slot("aln1", None, range(FIRST, SLOTS)) == 0


def test_nodes_that_start_at_the_same_time_begin_to_look_in_different_places(ip: Path) -> None:
    ip.write_text("[]")
    links = [f"aln{number:010x}" for number in range(8)]
    assert len({network.free_slot(link, None, []) for link in links}) == len(links)


@pytest.mark.parametrize(
    "route", ["10.213.45.0/30", "10.213.173.0/24", "10.213.45.2", "10.213.45.0/24"]
)
def test_a_network_that_the_machine_routes_elsewhere_is_not_taken(ip: Path, route: str) -> None:
    ip.write_text(routes((route, "docker0")))
    assert network.free_slot("aln1", None, []) == FIRST + 1


def test_a_node_keeps_its_network_while_it_is_its_own(ip: Path) -> None:
    ip.write_text(routes(("10.213.5.0/30", "aln1"), ("10.213.6.0/30", "aln2")))
    assert network.free_slot("aln1", 5, [0]) == 5
    assert network.free_slot("aln1", 6, [0]) == FIRST


def test_a_machine_without_a_free_network_is_told(ip: Path) -> None:
    ip.write_text(routes(("10.0.0.0/8", "vpn")))
    with pytest.raises(LocalClusterError, match=r"no network .* is free: .*alnair down"):
        network.free_slot("aln1", None, [])
    ip.write_text("[]")
    with pytest.raises(LocalClusterError, match="no network"):
        network.free_slot("aln1", None, range(SLOTS))


def test_the_machine_itself_gets_one_device_and_its_addresses_and_routes() -> None:
    ours = [command for command in network.setup(NODE, 42) if command[0] == "ip"]
    assert [shlex.join(command) for command in ours] == [
        f"ip link add {NODE.link} type veth peer name {NODE.link}p",
        f"ip link set {NODE.link}p netns 42 name eth0",
        f"ip address add 10.213.3.1/30 dev {NODE.link}",
        f"ip link set {NODE.link} up",
        "ip route add 10.213.131.0/24 via 10.213.3.2",
    ]


def test_all_else_happens_in_the_nodes_own_network() -> None:
    others = [command for command in network.setup(NODE, 42) if command[0] != "ip"]
    assert others
    assert all(command[:2] == ["nsenter", "--net=/proc/42/ns/net"] for command in others)
