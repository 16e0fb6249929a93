"""A GPU of the node is cut up while the agent runs: pods get its MIG devices, slices stay away."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator

import pytest

from alnair.kube.client import Client
from alnair.kube.resources import NODES
from alnair.local.controlplane import LocalCluster
from alnair.local.real_node import fake_gpu
from alnair.local.real_node.settings import NAME
from alnair.model import names
from kit.live.agent_in_node import run_in_node
from kit.live.real_pods import RealPods, busy, gpu, pod, python, reports, sliced, until

SMALL, LARGE = names.MIG_PREFIX + "1g.10gb", names.MIG_PREFIX + "2g.20gb"
#: Cuts a GPU up, and makes the devices that the driver's own tools would make.
CUT = """
import ctypes, errno, os, pathlib, stat, sys, time
library, gpu, layout = sys.argv[1:]
for _ in range(600):  # containers of pods that were deleted end a moment later
    result = ctypes.CDLL(library).fakegpu_mig(int(gpu), layout.encode() or None)
    if result != -errno.EBUSY:
        break
    time.sleep(0.1)
assert result == 0, result
run = pathlib.Path("/run/fakegpu")
(run / "dev" / "nvidia-caps").mkdir(exist_ok=True)
for access in run.glob("capabilities/**/access"):
    device = run / "dev" / "nvidia-caps" / f"nvidia-cap{access.read_text().split()[1]}"
    if not device.exists():
        os.mknod(device, stat.S_IFCHR | 0o666, os.makedev(1, 3))
        os.chmod(device, 0o666)
"""
#: What a program sees: names, UUIDs and MiB of CUDA's devices.
SEEN = """
import ctypes as c, json, uuid
cuda, count = c.CDLL("libcuda.so.1"), c.c_int()
assert cuda.cuInit(0) == 0 and cuda.cuDeviceGetCount(c.byref(count)) == 0
found = []
for i in range(count.value):
    name, own, total = c.create_string_buffer(96), c.create_string_buffer(16), c.c_size_t()
    cuda.cuDeviceGetName(name, 96, i)
    cuda.cuDeviceGetUuid_v2(own, i)
    cuda.cuDeviceTotalMem_v2(c.byref(total), i)
    found.append([name.value.decode(), f"MIG-{uuid.UUID(bytes=own.raw)}", total.value >> 20])
print(json.dumps(found), flush=True)
"""
HELD = """
import asyncio, json, pathlib
from alnair.node.kubelet.pod_resources import PodResources
async def ask():
    async with PodResources(pathlib.Path("/var/lib/kubelet/pod-resources/kubelet.sock")) as kubelet:
        return {f"{one.pod} {one.resource}": sorted(one.ids) for one in await kubelet.list()}
print(json.dumps(asyncio.run(ask())))
"""


def cut(cluster: LocalCluster, layout: str) -> None:
    """Cut up the second GPU; "" makes it whole again."""
    library = fake_gpu.BUILT / "libfakegpu.so"
    run_in_node(cluster, sys.executable, "-c", CUT, str(library), "1", layout)


async def offers(client: Client, **wanted: str) -> None:
    """Wait until the node offers so many whole GPUs and MIG devices, and percent of GPUs."""
    amounts = {"whole": names.GPU, "small": SMALL, "large": LARGE, "percent": names.VGPU_COMPUTE}

    async def does() -> bool:
        found = (await client.get(NODES, NAME))["status"]["allocatable"]
        return all(found.get(amounts[name], "0") == n for name, n in wanted.items())

    await until(does, f"the node offers {wanted}")


@pytest.fixture
async def cut_up(cluster: LocalCluster, client: Client, pods: RealPods) -> AsyncIterator[None]:
    """The second GPU has three MIG devices; afterwards it is whole again."""
    await asyncio.to_thread(cut, cluster, "1g.10gb,1g.10gb,2g.20gb")
    try:
        await offers(client, whole="1", small="2", large="1", percent="100")
        yield
    finally:
        await pods.clear()
        await asyncio.to_thread(cut, cluster, "")
        await offers(client, whole="2", small="0", large="0", percent="200")


@pytest.mark.usefixtures("cut_up")
async def test_mig_devices_are_given_whole_and_the_gpu_is_never_sliced(
    cluster: LocalCluster, client: Client, pods: RealPods
) -> None:
    await pods.start(pod("works", busy(limits={SMALL: "1"})))
    hold = f"{SEEN}\nimport time; time.sleep(3600)"
    # Two slices that one GPU cannot hold together, and one pod more than there are devices.
    await pods.start(pod("slice", python(hold, limits=sliced(1024, 60))))
    for name, limits in (("sees", {SMALL: "1"}), ("large", {LARGE: "1"})):
        await pods.start(pod(name, python(hold, limits=limits)))
    await pods.create(pod("second-slice", python(hold, limits=sliced(1024, 60))))
    await pods.create(pod("too-many", python(hold, limits={SMALL: "1"})))

    ((name, small, mib),) = json.loads(await pods.says("sees", "]"))
    ((_, large, _),) = json.loads(await pods.says("large", "]"))
    assert name == "NVIDIA H100 80GB HBM3 MIG 1g.10gb"
    held = json.loads(await asyncio.to_thread(run_in_node, cluster, sys.executable, "-c", HELD))
    assert held[f"sees {SMALL}"] == [small]
    assert held[f"large {LARGE}"] == [large]
    (working,) = held[f"works {SMALL}"]
    assert working not in (small, large)

    node = await client.get(NODES, NAME)
    (plain,) = json.loads(node["metadata"]["annotations"][names.GPU_STATIC])["gpus"]
    assert gpu(await pods.get("slice")) == plain["uuid"]
    assert node["status"]["allocatable"][names.VGPU_COMPUTE] == "100"
    assert node["metadata"]["labels"][f"{SMALL}.count"] == "2"
    for waiting in ("second-slice", "too-many"):
        assert not (await pods.get(waiting))["spec"].get("nodeName")

    async def has_worked() -> bool:
        """For longer than a stray is left alone, which the agent would evict."""
        said = reports(await pods.log("works"))
        return bool(said) and said[-1]["time"] - said[0]["time"] > 5

    await until(has_worked, "the program computes on its MIG device")
    assert reports(await pods.log("works"))[-1]["total_mib"] == mib
    found = await pods.get("works")
    assert found["status"]["phase"] == "Running"
    # Of the agent, who judges. The scheduler may have seen the pod before it heard of the GPU that
    # was cut up, and a kubelet that waits a second for what it mounts warns of that.
    told = [one for one in await pods.events(found) if one["source"]["component"] == names.AGENT]
    assert not [one for one in told if one["type"] == "Warning"]
