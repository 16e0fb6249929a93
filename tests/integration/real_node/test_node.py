"""A real node: containers, DNS, Services and fake GPUs; it outlives kills, and leaves nothing.

Needs Linux, root and some tools; elsewhere each test is skipped, with what is missing. The last
tests take the node away, after all that others did to it.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from alnair.kube.access import client_config
from alnair.kube.client import Client
from alnair.kube.resources import LEASES, NODES, PODS, SERVICES, Manifest
from alnair.local.components import processes
from alnair.local.controlplane import LocalCluster
from alnair.local.real_node import images, inhabitants
from alnair.local.real_node.choice import RealNodeWish
from alnair.local.real_node.init_script import driver_libraries
from alnair.local.real_node.programs import NAMES, NODE
from alnair.local.real_node.settings import NAME
from alnair.local.status import status
from alnair.model.names import REAL_NODE, VGPU_MEMORY
from kit.live.machine_traces import traces
from kit.live.real_pods import without_waits


def pod(
    name: str, image: str, *command: str, gpus: bool = False, forever: bool = False
) -> Manifest:
    """A pod for the real node, with all GPUs or none.

    Who uses a GPU that it was not given is evicted after some seconds: it is to be done before, and
    without a request a container gets next to no processor on a busy machine.
    """
    libraries = driver_libraries()
    driver = [libraries / one for one in ("libcuda.so.1", "libnvidia-ml.so.1", "libfakegpu.so")]
    mounted = [*driver, Path("/run/fakegpu")] if gpus else []
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", "labels": {"app": name}},
        "spec": {
            "restartPolicy": "Always" if forever else "Never",
            "nodeSelector": {REAL_NODE: "true"},
            "terminationGracePeriodSeconds": 0,
            "containers": [
                {
                    "name": "main",
                    "image": image,
                    "imagePullPolicy": "Never",
                    "command": list(command),
                    "resources": {"requests": {"cpu": "500m"} if gpus else {}},
                    "volumeMounts": [
                        {"name": f"v{i}", "mountPath": str(path)} for i, path in enumerate(mounted)
                    ],
                }
            ],
            "volumes": [
                {"name": f"v{i}", "hostPath": {"path": str(path)}} for i, path in enumerate(mounted)
            ],
        },
    }


def python(name: str, program: str, **options: bool) -> Manifest:
    """A pod that runs a few lines of Python."""
    return pod(name, images.PYTHON, "python3", "-uc", program, **options)


async def log(client: Client, name: str) -> str:
    """What a container wrote: the API server asks the kubelet for it."""
    return without_waits((await client.raw("GET", PODS.item(name, "default", "log"))).decode())


async def until(holds: Callable[[], Awaitable[bool]], seconds: float = 60) -> None:
    """Waits for something that the cluster does in its own time."""
    async with asyncio.timeout(seconds):
        while True:
            if await holds():
                return
            await asyncio.sleep(0.1)


async def reached(client: Client, name: str, *phases: str) -> Manifest:
    """Waits until a pod is in one of these phases, with all containers ready if it runs."""
    found: Manifest = {}

    async def is_there() -> bool:
        nonlocal found
        found = await client.get(PODS, name, "default")
        phase = found["status"]["phase"]
        return phase in phases and (phase != "Running" or container(found)["ready"])

    try:
        await until(is_there)
    except TimeoutError:
        pytest.fail(f"{name} is not {' or '.join(phases)}: {json.dumps(found.get('status'))}")
    return found


async def ended(client: Client, name: str) -> str:
    """Waits for the end of a pod, which must be a good one, and returns what it wrote."""
    found = await reached(client, name, "Succeeded", "Failed")
    text = await log(client, name)
    assert found["status"]["phase"] == "Succeeded", text
    return text


def container(found: Manifest) -> dict[str, Any]:
    """The state of a pod's container."""
    listed: list[dict[str, Any]] = found["status"].get("containerStatuses", [])
    return listed[0]


async def test_the_node_is_there_beside_the_simulated_ones(
    cluster: LocalCluster, client: Client
) -> None:
    assert {one.name for one in (await status(cluster)).components} >= set(NAMES)
    assert (await status(cluster)).healthy
    listed = (await client.list(NODES)).items
    assert {node["metadata"]["name"] for node in listed} == {NAME, "a100x8-0000", "a100x8-0001"}
    runtimes = {node["status"]["nodeInfo"]["containerRuntimeVersion"] for node in listed}
    assert "containerd://2.4.2" in runtimes


@pytest.mark.parametrize(
    ("name", "image", "command"),
    [
        ("in-c", images.CUDA, ["cuda_load"]),
        ("in-python", images.PYTHON, ["python3", "/usr/local/bin/cuda_load.py"]),
    ],
)
async def test_a_program_in_a_pod_uses_the_fake_gpu(
    client: Client, name: str, image: str, command: list[str]
) -> None:
    arguments = ["--seconds", "0.2", "--memory-mib", "512"]
    await client.create(PODS, pod(name, image, *command, *arguments, gpus=True))
    said = json.loads(await ended(client, name))
    assert (said["gpus"], said["model"]) == (2, "NVIDIA H100 80GB HBM3")
    assert said["memory_mib"] == 512
    assert said["kernels"] > 0


async def test_a_program_in_a_pod_without_a_gpu_finds_no_driver(client: Client) -> None:
    await client.create(PODS, pod("without", images.CUDA, "cuda_load"))
    found = await reached(client, "without", "Succeeded", "Failed")
    assert found["status"]["phase"] == "Failed"
    assert "there is no GPU driver here: libcuda.so.1" in await log(client, "without")


async def test_pods_on_one_gpu_are_told_apart_though_each_is_process_1(client: Client) -> None:
    # Held until it is told to end, so that both are on the GPU at the same time.
    hold = (
        "import ctypes, os, time\n"
        "cuda = ctypes.CDLL('libcuda.so.1'); context = ctypes.c_void_p()\n"
        "assert cuda.cuInit(0) == 0\n"
        "assert cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == 0\n"
        "print('holds as', os.getpid())\n"
        "time.sleep(3600)\n"
    )
    count = (
        "import ctypes\n"
        "nvml = ctypes.CDLL('libnvidia-ml.so.1')\n"
        "gpu, number = ctypes.c_void_p(), ctypes.c_uint(64)\n"
        "assert nvml.nvmlInit_v2() == 0\n"
        "assert nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(gpu)) == 0\n"
        "buffer = ctypes.create_string_buffer(64 * 64)\n"
        "assert not nvml.nvmlDeviceGetComputeRunningProcesses_v3(\n"
        "    gpu, ctypes.byref(number), buffer)\n"
        "print(number.value)\n"
    )
    for name in ("hold-a", "hold-b"):
        # Both get the same GPU, and are no strays, which would be evicted.
        holding = python(name, hold)
        holding["spec"]["containers"][0]["resources"] = {"limits": {VGPU_MEMORY: "4096"}}
        await client.create(PODS, holding)
    for name in ("hold-a", "hold-b"):
        await reached(client, name, "Running")

        async def holds(name: str = name) -> bool:
            return await log(client, name) == "holds as 1\n"

        await until(holds)
    await client.create(PODS, python("count", count, gpus=True))
    assert await ended(client, "count") == "2\n"
    for name in ("hold-a", "hold-b"):
        await client.delete(PODS, name, "default", grace_seconds=0)


async def test_pods_reach_services_by_name_and_the_api_server_and_are_reached(
    client: Client,
) -> None:
    serve = "import http.server as h; h.test(h.SimpleHTTPRequestHandler, port=80)"
    await client.create(PODS, python("web", serve, forever=True))
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": {"selector": {"app": "web"}, "ports": [{"port": 8000, "targetPort": 80}]},
    }
    await client.create(SERVICES, service)
    await reached(client, "web", "Running")
    ask = (
        "import socket, ssl, time, urllib.request as u\n"
        "until = time.monotonic() + 30\n"
        "def ask(*what, **how):\n"
        "    while True:\n"
        "        try: return u.urlopen(*what, timeout=5, **how).status\n"
        "        except OSError:\n"
        "            if time.monotonic() > until: raise\n"
        "            time.sleep(0.2)\n"
        "print(ask('http://web.default.svc.cluster.local:8000'))\n"
        "folder = '/var/run/secrets/kubernetes.io/serviceaccount/'\n"
        "trust = ssl.create_default_context(cafile=folder + 'ca.crt')\n"
        "token = open(folder + 'token').read()\n"
        "asked = u.Request('https://kubernetes.default/version',\n"
        "                  headers={'Authorization': 'Bearer ' + token})\n"
        "print(ask(asked, context=trust))\n"
    )
    await client.create(PODS, python("ask", ask))
    assert await ended(client, "ask") == "200\n200\n"
    # As a Prometheus on this machine would.
    address = (await client.get(PODS, "web", "default"))["status"]["podIP"]
    reader, writer = await asyncio.open_connection(address, 80)
    writer.write(b"GET / HTTP/1.0\r\n\r\n")
    assert (await reader.readline()).startswith(b"HTTP/1.0 200")
    writer.close()
    await client.delete(PODS, "web", "default", grace_seconds=0)


async def test_mounting_over_the_drivers_files_is_refused_in_a_pod(client: Client) -> None:
    tried = pod("mounting", images.CUDA, "unshare", "-Urm", "true")
    await client.create(PODS, tried)
    found = await reached(client, "mounting", "Succeeded", "Failed")
    assert found["status"]["phase"] == "Failed"
    assert "Operation not permitted" in await log(client, "mounting")


async def test_simulated_nodes_have_leases_where_a_lost_node_counts(
    cluster: LocalCluster, client: Client
) -> None:
    manager = cluster.running()["kube-controller-manager"].process.cmdline()
    assert not any(flag.startswith("--node-monitor") for flag in manager)
    for node in ("a100x8-0000", "a100x8-0001"):
        lease = await client.get(LEASES, node, "kube-node-lease")
        assert lease["spec"]["leaseDurationSeconds"] == 160


@pytest.mark.parametrize(
    ("killed", "pods_survive"),
    [
        (("kubelet",), True),
        (("containerd",), True),
        (("kube-proxy", "coredns", "api-forwarder"), True),
        (("shim",), False),
        (("node",), False),
    ],
)
async def test_up_repairs_the_node_whatever_is_killed(
    cluster: LocalCluster, client: Client, killed: tuple[str, ...], pods_survive: bool
) -> None:
    # One of its own, as the kubelet lets a container wait that is restarted again and again.
    runs = f"runs-{killed[0]}"
    await client.create(PODS, python(runs, "import time; time.sleep(3600)", forever=True))
    before = container(await reached(client, runs, "Running"))["containerID"]
    for component in killed:
        await cluster.stop(component, signal.SIGKILL)
    await LocalCluster(cluster.name, root=cluster.layout.root).up()
    assert (await status(cluster)).healthy

    async def runs_as_it_should() -> bool:
        found = container(await reached(client, runs, "Running"))
        return (found["containerID"] == before) == pods_survive

    await until(runs_as_it_should)
    await client.delete(PODS, runs, "default", grace_seconds=0)
    name = f"after-{killed[0]}"
    await client.create(PODS, python(name, "import socket; socket.getaddrinfo('kubernetes', 443)"))
    await ended(client, name)


def test_up_goes_on_where_another_up_was_killed(cluster: LocalCluster) -> None:
    asyncio.run(cluster.stop("node", signal.SIGKILL))
    environment = {**os.environ, "ALNAIR_STATE": str(cluster.layout.root)}
    command = [sys.executable, "-m", "alnair", "up", "--name", cluster.name]
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as killed:
        until = time.monotonic() + 60
        while time.monotonic() < until:
            has_ended = killed.poll() is not None  # before the look: in between it may get far
            if "containerd" in cluster.running():
                break
            assert not has_ended
            time.sleep(0.01)
        killed.kill()
    assert "containerd" in cluster.running()
    asyncio.run(cluster.up())
    assert asyncio.run(status(cluster)).healthy


async def test_a_choice_of_other_gpus_replaces_the_driver_and_keeps_the_node(
    cluster: LocalCluster, client: Client
) -> None:
    wish = RealNodeWish(gpus=3, gpu_model="t4")
    await LocalCluster(cluster.name, real_node=wish, root=cluster.layout.root).up()
    await client.create(PODS, pod("other", images.CUDA, "cuda_load", "--seconds", "0", gpus=True))
    said = json.loads(await ended(client, "other"))
    assert (said["gpus"], said["model"]) == (3, "Tesla T4")


async def test_down_leaves_no_trace_on_the_machine(
    cluster: LocalCluster, client: Client, machine_before: dict[str, list[str]]
) -> None:
    await client.create(PODS, python("last", "import time; time.sleep(3600)"))
    await reached(client, "last", "Running")
    real = [one.pid for one in processes.find(cluster.layout.folder) if one.component == NODE]
    node = inhabitants.of_node(real)
    assert len(inhabitants.living(node)) > len(NAMES)
    during = traces(cluster.layout)
    assert during["control groups"] != machine_before["control groups"]
    assert during["links"] != machine_before["links"]
    await cluster.down(keep_data=True)
    assert traces(cluster.layout) == machine_before
    assert inhabitants.living(node) == []


async def test_a_cluster_that_shall_have_no_real_node_any_more_forgets_it(
    cluster: LocalCluster, machine_before: dict[str, list[str]]
) -> None:
    wish = RealNodeWish(wanted=False)
    await LocalCluster(cluster.name, real_node=wish, root=cluster.layout.root).up()
    assert (await status(cluster)).healthy
    assert not set(NAMES) & set(cluster.running())
    async with Client(client_config.load(cluster.kubeconfig())) as client:
        names = {one["metadata"]["name"] for one in (await client.list(NODES)).items}
    assert names == {"a100x8-0000", "a100x8-0001"}
    await cluster.down()
    assert traces(cluster.layout) == machine_before
    assert not cluster.layout.folder.exists()
