"""Pods that hold a slice of a GPU and try again and again to pass its limit."""

from typing import Any

from alnair.kube.client import Client
from alnair.kube.resources import PODS, Manifest
from alnair.local.controlplane import LocalCluster
from alnair.local.real_node import images
from alnair.model import names
from alnair.node.vgpu.pages import abi
from kit.live.real_pods import without_waits
from kit.live.scheduler_process import eventually
from kit.real_node import node_shell

#: Takes half of its slice, and asks for more than all of it again and again.
TRIES = """
import ctypes, time
cuda = ctypes.CDLL("libcuda.so.1")
context, memory = ctypes.c_void_p(), ctypes.c_uint64()
assert not cuda.cuInit(0)
assert not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
assert not cuda.cuCtxSetCurrent(context)
free, total = ctypes.c_size_t(), ctypes.c_size_t()
assert not cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
assert not cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(total.value // 2))
while True:
    refused = cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(total.value // 2 + 1))
    assert refused == 2, refused
    assert not cuda.cuMemGetInfo_v2(ctypes.byref(free), ctypes.byref(total))
    print(total.value >> 20, flush=True)
    time.sleep(0.2)
"""


def tenant(name: str, limits: dict[str, str]) -> Manifest:
    """A pod that holds on to its GPU."""
    main = {
        "name": "main",
        "image": images.PYTHON,
        "imagePullPolicy": "Never",
        "command": ["python3", "-uc", TRIES],
        "resources": {"limits": limits},
    }
    spec = {
        # They leave room for a whole GPU, whatever pods before asked for.
        "schedulerName": names.IN_ORDER,
        "nodeSelector": {names.REAL_NODE: "true"},
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "containers": [main],
    }
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


async def lines(client: Client, name: str) -> list[str]:
    """What a program said so far: the MiB that it has, once for each refusal."""
    log = (await client.raw("GET", PODS.item(name, "default", "log"))).decode()
    return without_waits(log).splitlines()


async def is_held(client: Client, name: str, mib: int) -> None:
    """Wait until a program has been refused some more, and nothing else happened to it."""
    before = len(await lines(client, name))

    async def goes_on() -> bool:
        return len(await lines(client, name)) > before + 3

    await eventually(goes_on, 60, f"{name} says nothing more")
    assert set(await lines(client, name)) == {str(mib)}


async def runs(client: Client, name: str) -> dict[str, Any]:
    """Wait until a pod runs; return its container's status."""
    found: dict[str, Any] = {}

    async def is_there() -> bool:
        nonlocal found
        listed = (await client.get(PODS, name, "default"))["status"].get("containerStatuses")
        found = listed[0] if listed else {}
        return "running" in found.get("state", {})

    await eventually(is_there, 60, f"{name} does not run")
    return found


def pages(cluster: LocalCluster) -> dict[str, tuple[int, int, int]]:
    """Of each container with a slice: MiB, percent, and when a server was there last (ns)."""
    found = {}
    for path in node_shell.root(cluster.layout.folder).glob("run/alnair/agent/containers/*/limits"):
        try:
            page = abi.Limits.from_buffer_copy(path.read_bytes())
        except FileNotFoundError:
            continue  # it was taken back meanwhile
        row = page.device[0]
        figures = row.memory_limit >> 20, row.compute_percent, page.heartbeat_ns
        found[path.parent.name] = figures
    return found
