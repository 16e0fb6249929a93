"""The history that an installed controller keeps, in each kind of database, asked from outside."""

import asyncio
import contextlib
import signal
from collections.abc import AsyncIterator, Iterator
from typing import Any

import psutil
import pytest

from alnair.kube.access import client_config
from alnair.kube.client import Client
from alnair.kube.resources import CLAIMS, PERSISTENT_VOLUMES, PODS, SECRETS, Manifest
from alnair.local.real_node import images
from alnair.local.real_node.settings import NAME
from alnair.model import names
from kit.command import alnair, last_json
from kit.live.real_pods import RealPods, container, pod, sliced, until
from kit.postgres import Postgres
from kit.real_node import node_shell
from kit.real_node.installed import Installed

#: What a cluster's administrator makes where nothing makes volumes by itself.
FOLDER = "/var/lib/history"
#: An agent is visited more often than by default.
OFTEN = "controller.extraArgs={--history-period=1}"
CONTROLLERS = "app.kubernetes.io/component=controller"


@pytest.fixture
async def client(installed: Installed) -> AsyncIterator[Client]:
    async with Client(client_config.load(installed.cluster.kubeconfig())) as client:
        yield client


@pytest.fixture
async def pods(client: Client) -> AsyncIterator[RealPods]:
    made = RealPods(client)
    yield made
    await made.clear()


@pytest.fixture
def postgres(installed: Installed) -> Iterator[Postgres]:
    server = Postgres(installed.host_address)
    server.start()
    yield server
    server.close()


def works(name: str) -> Manifest:
    """A pod that uses its slice for some seconds."""
    command = ("cuda_load", "--seconds", "3", "--kernel-us", "1000")
    return pod(name, container(images.CUDA, *command, limits=sliced(2000, 30)))


async def kept(installed: Installed, name: str) -> dict[str, Any]:
    """What `alnair history` says of a pod that has ended, when all is known of it."""
    found: dict[str, Any] = {}
    words = ("history", f"--kubeconfig={installed.cluster.kubeconfig()}", "--json")

    async def is_known() -> bool:
        nonlocal found
        done = await asyncio.to_thread(alnair, *words)
        if done.returncode:  # after an upgrade or a kill, for a moment no controller leads
            found = {"error": done.stderr}
            return False
        found = next((one for one in last_json(done)["jobs"] if one["name"] == name), {})
        return found.get("state") == "completed" and "gpu_util" in found

    try:
        await until(is_known, f"the history has {name}, with what it used")
    except BaseException:
        print("the history has:", found)
        raise
    return found


async def controller(client: Client) -> Manifest:
    """The controller's one pod, if it is well."""
    found = (await client.list(PODS, names.NAMESPACE, label_selector=CONTROLLERS)).items
    (one,) = (one for one in found if not one["metadata"].get("deletionTimestamp"))
    return one


@pytest.mark.timeout(300)  # it may be the first, for which the cluster starts
async def test_a_postgresql_is_reached_by_the_url_in_a_secret(
    installed: Installed, client: Client, pods: RealPods, postgres: Postgres
) -> None:
    url = {"stringData": {"url": postgres.open_to_others()}, "metadata": {"name": "history"}}
    await client.create(SECRETS, url, namespace=names.NAMESPACE)
    history = "controller.history.enabled=true,controller.history.urlFrom.secret=history"
    await installed.upgrade(f"--set={history},{OFTEN}")
    await pods.create(works("in-postgresql"))
    found = await kept(installed, "in-postgresql")
    assert (found["kind"], found["pods"]) == ("Pod", 1)
    assert "T4" in found["gpu_model"]
    assert found["gpu_util"] > 0


@pytest.mark.timeout(180)
async def test_on_a_volume_it_outlives_a_kill_of_the_controller(
    installed: Installed, client: Client, pods: RealPods
) -> None:
    folder = installed.cluster.layout.folder
    node_shell.run(folder, "mkdir", "-p", FOLDER)
    await client.create(PERSISTENT_VOLUMES, volume())
    history = "controller.history.enabled=true,controller.history.urlFrom.secret="
    await installed.upgrade(f"--set={history},{OFTEN}")
    await pods.create(works("before"))
    first = await kept(installed, "before")

    await pods.create(works("meanwhile"))
    # It runs for 3 s: who looks may stand still for longer.
    await pods.reached("meanwhile", "Running", "Succeeded")
    process = in_node(installed, "--history=/var/lib/alnair/history.db")
    print("MiB of the controller with a history:", process.memory_info().rss >> 20)
    process.send_signal(signal.SIGKILL)
    await pods.reached("meanwhile", "Succeeded")
    await kept(installed, "meanwhile")
    again = await kept(installed, "before")
    for what in ("uid", "submitted", "started", "completed", "pods", "gpu_hours"):
        assert again[what] == first[what], what

    async def is_counted() -> bool:  # the kubelet tells it a moment later
        (status,) = (await controller(client))["status"]["containerStatuses"]
        assert status["restartCount"] <= 1
        return bool(status["restartCount"] == 1)

    await until(is_counted, "the controller was restarted")

    await installed.upgrade("--set=controller.history.enabled=false")
    await client.delete(CLAIMS, "alnair-history", names.NAMESPACE)
    await client.delete(PERSISTENT_VOLUMES, "history")
    node_shell.run(folder, "rm", "-r", FOLDER)


def volume() -> Manifest:
    """A folder of the node, for the claim that the chart makes."""
    term = {"key": "kubernetes.io/hostname", "operator": "In", "values": [NAME]}
    claim = {"namespace": names.NAMESPACE, "name": "alnair-history"}
    return {
        "metadata": {"name": "history"},
        "spec": {
            "capacity": {"storage": "5Gi"},
            "accessModes": ["ReadWriteOnce"],
            "claimRef": claim,
            "local": {"path": FOLDER},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [term]}]}},
        },
    }


def in_node(installed: Installed, argument: str) -> psutil.Process:
    """The one process of the node's pods that has this argument."""
    first = psutil.Process(node_shell.pid(installed.cluster.layout.folder))
    found = []
    for one in first.children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):  # others come and go
            if argument in one.cmdline():
                found.append(one)
    (process,) = found
    return process
