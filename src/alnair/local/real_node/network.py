"""The link between the machine and the node: a pair of network devices that goes with the node."""

import ipaddress
import json
import subprocess
import zlib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from alnair.local.errors import LocalClusterError
from alnair.local.real_node.settings import SLOTS, NodeSettings

_INSIDE = "eth0"


def setup(node: NodeSettings, pid: int) -> list[list[str]]:
    """The commands that make the link, where it is not there at all.

    Args:
        node: The node.
        pid: Its PID 1, as the machine has it.
    """
    inside = ["nsenter", f"--net=/proc/{pid}/ns/net"]
    peer = f"{node.link}p"
    return [
        ["ip", "link", "add", node.link, "type", "veth", "peer", "name", peer],
        ["ip", "link", "set", peer, "netns", str(pid), "name", _INSIDE],
        ["ip", "address", "add", f"{node.host_address}/30", "dev", node.link],
        ["ip", "link", "set", node.link, "up"],
        ["ip", "route", "add", node.pod_cidr, "via", node.address],
        [*inside, "ip", "link", "set", "lo", "up"],
        [*inside, "ip", "address", "add", f"{node.address}/30", "dev", _INSIDE],
        [*inside, "ip", "link", "set", _INSIDE, "up"],
        [*inside, "ip", "route", "add", "default", "via", node.host_address],
        # Of the node's network alone: the kernel keeps it per network namespace.
        [*inside, "/bin/sh", "-c", "echo 1 >/proc/sys/net/ipv4/ip_forward"],
    ]


def ensure(node: NodeSettings, pid: int) -> None:
    """Has the link there and whole; half of one is made anew.

    Raises:
        LocalClusterError: The machine refuses.
    """
    if _is_whole(node, pid):
        return
    remove(node.link)
    for command in setup(node, pid):
        result = subprocess.run(command, capture_output=True, text=True, check=False)
        if result.returncode != 0:
            remove(node.link)
            raise LocalClusterError(
                f"the network of the real node cannot be made: {' '.join(command)}:"
                f" {result.stderr.strip()}"
            )


def remove(link: str) -> None:
    """Removes the link, and with it its addresses and routes; it need not be there."""
    if Path("/sys/class/net", link).exists():
        subprocess.run(["ip", "link", "delete", link], capture_output=True, check=False)


def free_slot(link: str, present: int | None, taken: Iterable[int]) -> int:
    """A network for a node that meets no route of this machine but its own.

    Args:
        link: The device towards the node, which may be there.
        present: The slot that it has, which it keeps if it can; None: it has none yet.
        taken: Slots of other clusters.

    Raises:
        LocalClusterError: There is none.
    """
    used = {*taken}
    routes = [
        ipaddress.ip_network(route["dst"], strict=False)
        for route in _json("ip", "-4", "-json", "route", "show", "table", "all")
        if route["dst"] != "default" and route.get("dev") != link
    ]
    # Two clusters that start at once, of users who do not see each other's, begin to look apart.
    first = zlib.crc32(link.encode())
    slots = [(first + number) % SLOTS for number in range(SLOTS)]
    for slot in slots if present is None else [present, *slots]:
        networks = [f"10.213.{slot}.0/24", f"10.213.{128 + slot}.0/24"]
        wanted = [ipaddress.ip_network(network) for network in networks]
        if slot not in used and not any(r.overlaps(w) for r in routes for w in wanted):
            return slot
    raise LocalClusterError(
        "no network for a real node is free: all of 10.213.0.0/16 is used by other clusters or"
        " routed elsewhere (ip route): take a cluster down (alnair down)"
    )


def _is_whole(node: NodeSettings, pid: int) -> bool:
    """Whether both ends, the address and the routes are there."""
    inside = ["nsenter", f"--net=/proc/{pid}/ns/net", "ip"]
    for ip, device, address, destination in (
        (["ip"], node.link, node.host_address, node.pod_cidr),
        (inside, _INSIDE, node.address, "default"),
    ):
        found = _json(*ip, "-json", "address", "show", "dev", device)
        addresses = [one.get("local") for link in found for one in link.get("addr_info", ())]
        routes = _json(*ip, "-4", "-json", "route", "show", "dev", device)
        if address not in addresses or destination not in [route["dst"] for route in routes]:
            return False
        if any("UP" not in link.get("flags", ()) for link in found):
            return False
    return True


def _json(*command: str) -> list[dict[str, Any]]:
    """What `ip` says; nothing where it fails, as for a device that is not there."""
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    return [] if result.returncode else list(json.loads(result.stdout or "[]"))
