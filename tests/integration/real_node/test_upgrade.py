"""Another version of the agent takes over containers that run, and hands them back; and it goes.

The older one is taken from the repository's history: the last before the device plugin.
"""

import asyncio
import contextlib
import os
import re
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest

from alnair.kube.access import client_config
from alnair.kube.client import Client
from alnair.kube.errors import NotFound
from alnair.kube.resources import LEASES, NODE_RESOURCE_TOPOLOGIES, NODES, PODS, Manifest
from alnair.local.components import supervision
from alnair.local.controlplane import LocalCluster
from alnair.local.real_node import programs
from alnair.local.real_node.settings import NAME
from alnair.local.report import NO_REPORT
from alnair.model import names
from alnair.model.names import REAL_NODE
from alnair.processes.agent.node_object import FIELD_MANAGER
from kit.live.real_pods import RealPods
from kit.live.scheduler_process import eventually
from kit.real_node import node_shell
from kit.real_node.inventory import described
from kit.real_node.trying_tenants import is_held, pages, runs, tenant

OLDER = "088a477c0baa4c00c2881a18bbfa5e7c07b7c946"
ROOT = Path(__file__).parents[3]
#: What an agent leaves when it is stopped; `docs/how-to/remove-the-agent.md` says so.
FOLDER, NOTES = (
    "run/alnair",
    re.compile(r"var/lib/kubelet/device-plugins/alnair-nvidia\.com-.+\.served"),
)


@pytest.fixture
def older(tmp_path: Path) -> Path:
    """The sources of the older agent."""
    command = ("git", "-C", str(ROOT), "archive", OLDER, "src")
    found = subprocess.run(command, capture_output=True, check=False)
    if found.returncode:
        pytest.skip(f"the history has no {OLDER}: {found.stderr.decode().strip()}")
    subprocess.run(["tar", "-x", "-C", tmp_path], input=found.stdout, check=True)
    return tmp_path / "src"


@pytest.fixture
async def client(cluster: LocalCluster) -> AsyncIterator[Client]:
    async with Client(client_config.load(cluster.kubeconfig())) as client:
        await described(client)
        yield client


async def nobody_has_a_slice(cluster: LocalCluster) -> bool:
    """Whether the node has no container with limits."""
    return not pages(cluster)


async def start_new(cluster: LocalCluster) -> None:
    """Start the agent as the node has it."""
    node = cluster.real_node()
    assert node is not None
    wanted = next(one for one in node.components() if one.name == programs.AGENT)
    await supervision.ensure(wanted, cluster.layout, NO_REPORT)


class OlderAgent:
    """The older agent in the node, over the same folder."""

    def __init__(self, cluster: LocalCluster, sources: Path) -> None:
        command = [
            *node_shell.inside(cluster.layout.folder),
            *(sys.executable, "-m", "alnair", "agent", "--node=real-0", "--policy=evict"),
            f"--kubeconfig={cluster.layout.kubeconfig('agent')}",
            "--metrics=127.0.0.1:0",
        ]
        environment = {**os.environ, "PYTHONPATH": str(sources)}
        self._process = subprocess.Popen(
            command, env=environment, stdout=subprocess.PIPE, text=True
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline().startswith("ready: folder /run/alnair/agent")

    def stop(self) -> None:
        """End it as a supervisor does."""
        # The process itself only waits for its child, which is in the node.
        for child in psutil.Process(self._process.pid).children():
            child.send_signal(signal.SIGTERM)
        self._process.communicate(timeout=20)


@pytest.mark.timeout(240)
async def test_another_version_takes_over_what_runs_and_hands_it_back(
    cluster: LocalCluster, client: Client, pods: RealPods, older: Path
) -> None:
    await eventually(lambda: nobody_has_a_slice(cluster), 30, "another test's pods have slices")
    wanted = {"a": (2000, 30), "b": (3000, 0)}
    for name, (mib, percent) in wanted.items():
        limits = {names.VGPU_MEMORY: str(mib)}
        limits |= {names.VGPU_COMPUTE: str(percent)} if percent else {}
        await pods.create(tenant(name, limits))
    await pods.create(tenant("whole", {names.GPU: "1"}))
    before = {name: (await runs(client, name))["containerID"] for name in (*wanted, "whole")}
    for name, (mib, _) in wanted.items():
        await is_held(client, name, mib)
    limits_before = {name: page[:2] for name, page in pages(cluster).items()}
    assert sorted(mib for mib, _ in limits_before.values()) == [2000, 3000]

    async def held_by_another(former: dict[str, tuple[int, int, int]]) -> None:
        async def beats() -> bool:
            now = pages(cluster)
            return all(now[name][2] > former[name][2] for name in former)

        await eventually(beats, 30, "nobody serves the pages")
        assert {name: page[:2] for name, page in pages(cluster).items()} == limits_before
        for name, (mib, _) in wanted.items():
            await is_held(client, name, mib)
        assert {name: (await runs(client, name))["containerID"] for name in before} == before

    await cluster.stop(programs.AGENT)
    former = pages(cluster)
    agent = await asyncio.to_thread(OlderAgent, cluster, older)
    try:
        await held_by_another(former)
    finally:
        await asyncio.to_thread(agent.stop)
    former = pages(cluster)
    await start_new(cluster)
    await held_by_another(former)
    # And it knows still who has what: the next one gets what is left.
    await pods.create(tenant("c", {names.VGPU_MEMORY: "2000"}))
    await runs(client, "c")
    await is_held(client, "c", 2000)


@pytest.mark.timeout(240)
async def test_a_drained_node_is_as_before_once_the_agent_and_its_folder_are_gone(
    cluster: LocalCluster, client: Client, pods: RealPods
) -> None:
    folder = cluster.layout.folder
    places = ("/run/alnair", "/run/cdi", "/var/lib/kubelet/device-plugins", "/etc")
    await pods.create(tenant("a", {names.VGPU_MEMORY: "2000"}))
    await pods.create(tenant("whole", {names.GPU: "1"}))
    for name in ("a", "whole"):
        await runs(client, name)
    during = node_shell.listed(folder, places)
    assert any(path.startswith("run/cdi/alnair-") for path in during)
    for name in ("a", "whole"):
        await client.delete(PODS, name, "default")

    async def is_drained() -> bool:
        now = node_shell.listed(folder, places)
        return not any("/cdi/alnair-" in path or "agent/containers/" in path for path in now)

    await eventually(is_drained, 60, "what containers had is not taken back")
    await cluster.stop(programs.AGENT)
    left = [path for path in node_shell.listed(folder, places) if "alnair" in path]
    notes = [path for path in left if NOTES.fullmatch(path)]
    assert notes
    assert [path for path in left if not path.startswith(f"{FOLDER}/") and path not in notes] == []
    node_shell.run(folder, "rm", "-r", *(f"/{path}" for path in (FOLDER, *notes)))
    mounts = node_shell.run(folder, "cat", "/proc/self/mounts").splitlines()
    assert [line for line in mounts if "/run/alnair" in line or "/run/cdi" in line] == []
    await forget(client)
    node = await client.get(NODES, NAME)
    keys = {*node["metadata"]["labels"], *node["metadata"]["annotations"]}
    assert {key for key in keys if key.startswith(("ai.centaurus.io/", "nvidia.com/"))} == {
        REAL_NODE
    }
    for amounts in (node["status"]["capacity"], node["status"]["allocatable"]):
        assert not {names.VGPU_MEMORY, names.VGPU_COMPUTE} & set(amounts)

    async def are_not_offered() -> bool:
        allocatable = (await client.get(NODES, NAME))["status"]["allocatable"]
        return not {one for one in allocatable if allocatable[one] != "0"} & set(
            names.GPU_RESOURCES
        )

    # The kubelet tells it at its next look, and forgets them in five minutes.
    await eventually(are_not_offered, 40, "the node offers GPUs still")
    # It comes again: at once for slices, and for whole GPUs when the kubelet has forgotten them.
    await LocalCluster(cluster.name, root=cluster.layout.root).up()
    await pods.create(tenant("a-again", {names.VGPU_MEMORY: "2000"}))
    await runs(client, "a-again")
    await is_held(client, "a-again", 2000)


async def forget(client: Client) -> None:
    """What `docs/how-to/remove-the-agent.md` says to do in the cluster."""
    node: Manifest = {"apiVersion": "v1", "kind": "Node", "metadata": {"name": NAME}}
    await client.apply(NODES, node, field_manager=FIELD_MANAGER)
    none = dict.fromkeys(names.SLICE_RESOURCES)
    status = {"status": {"capacity": none, "allocatable": none}}
    await client.merge_patch(NODES, NAME, status, subresource="status")
    loads = {f"{names.GPU_LOAD}{index}": None for index in range(2)}
    metadata = {
        "labels": {names.VGPU_TIER: None},
        "annotations": {names.VGPU_PROMISE: None, **loads},
    }
    await client.merge_patch(NODES, NAME, {"metadata": metadata})
    lease = f"{names.AGENT_LEASE_PREFIX}{NAME}"
    await client.delete(LEASES, lease, names.NAMESPACE)
    with contextlib.suppress(NotFound):  # only where its zones are told
        await client.delete(NODE_RESOURCE_TOPOLOGIES, NAME)
