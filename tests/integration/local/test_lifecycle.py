"""A cluster comes up, is repaired, and goes, whatever is killed on the way."""

import asyncio
import os
import random
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from alnair.kube.access import client_config
from alnair.kube.client import Client
from alnair.kube.errors import Forbidden
from alnair.kube.resources import CONFIGMAPS, LEASES, NODES, Manifest
from alnair.local import controlplane
from alnair.local.components import ports, processes
from alnair.local.components.components import BARE
from alnair.local.controlplane import LocalCluster
from alnair.local.errors import LocalClusterError
from alnair.local.status import status
from alnair.model import names
from kit.live.audited_requests import TRESPASSER
from kit.live.scheduler_process import eventually

MakeCluster = Callable[..., LocalCluster]


def listening(pids: set[int]) -> set[int]:
    """The ports on which processes listen."""
    return {
        connection.laddr.port
        for connection in psutil.net_connections("tcp")
        if connection.pid in pids and connection.status == psutil.CONN_LISTEN
    }


async def remember(cluster: LocalCluster, name: str) -> None:
    """Writes an object."""
    async with Client(client_config.load(cluster.kubeconfig())) as client:
        document = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "default"},
        }
        await client.create(CONFIGMAPS, document)


async def remembers(cluster: LocalCluster, name: str) -> bool:
    """Whether an object is there."""
    async with Client(client_config.load(cluster.kubeconfig())) as client:
        listed = await client.list(CONFIGMAPS, "default")
        return any(one["metadata"]["name"] == name for one in listed.items)


@pytest.fixture(scope="module")
def spare(cluster_root: Path) -> Iterator[LocalCluster]:
    """A bare cluster that tests may damage, as long as `up` repairs it."""
    cluster = LocalCluster("lc-spare", components=BARE, root=cluster_root)
    asyncio.run(cluster.up())
    yield cluster
    asyncio.run(cluster.down())


async def test_every_component_of_a_full_cluster_is_well(cluster: LocalCluster) -> None:
    found = await status(cluster)
    assert found.healthy
    assert {one.name for one in found.components} == {
        "etcd",
        "kube-apiserver",
        "kube-controller-manager",
        "kube-scheduler",
        "kwok",
    }


async def test_a_lease_that_another_left_behind_is_told_until_the_scheduler_leads(
    cluster: LocalCluster, client: Client
) -> None:
    left: Manifest = {
        "metadata": {"name": names.SCHEDULER, "namespace": names.NAMESPACE},
        "spec": {
            "holderIdentity": "gone_1",
            "leaseDurationSeconds": 600,
            "renewTime": "2020-01-01T00:00:00.000000Z",
        },
    }
    await client.create(LEASES, left)
    try:
        await cluster.start(names.SCHEDULER)
        assert [note.partition(" and ")[0] for note in (await status(cluster)).notes] == [
            "alnair-scheduler does not lead yet: gone_1 holds the lease"
        ]
        spec = {"holderIdentity": "", "leaseDurationSeconds": 1}
        await client.merge_patch(LEASES, names.SCHEDULER, {"spec": spec}, names.NAMESPACE)

        async def nothing_said() -> bool:
            return not (await status(cluster)).notes

        await eventually(nothing_said)
    finally:
        await cluster.stop(names.SCHEDULER)
        await client.delete_collection(LEASES, names.NAMESPACE)


async def test_all_servers_listen_on_loopback_alone(cluster: LocalCluster) -> None:
    pids = {running.pid for running in processes.find(cluster.layout.folder)}
    addresses = {
        connection.laddr.ip
        for connection in psutil.net_connections("tcp")
        if connection.pid in pids and connection.status == psutil.CONN_LISTEN
    }
    assert addresses == {"127.0.0.1"}


@pytest.mark.parametrize(
    "component", ["etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok"]
)
async def test_up_repairs_a_component_that_was_killed(
    cluster: LocalCluster, component: str
) -> None:
    await remember(cluster, f"before-{component}-died")
    others = {name: found.pid for name, found in cluster.running().items() if name != component}
    await cluster.stop(component, signal.SIGKILL)
    assert cluster.pid(component) is None
    await LocalCluster(cluster.name, root=cluster.layout.root).up()
    assert (await status(cluster)).healthy
    assert await remembers(cluster, f"before-{component}-died")
    still = {name: cluster.pid(name) for name in others}
    assert still == others


async def test_up_replaces_a_component_that_hangs(
    spare: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(controlplane, "_PATIENCE_SECONDS", 2.0)
    hanging = spare.running()["kube-apiserver"]
    hanging.process.suspend()
    await spare.up()
    assert spare.pid("kube-apiserver") not in {None, hanging.pid}


async def test_up_again_changes_nothing(cluster: LocalCluster) -> None:
    before = {name: found.pid for name, found in cluster.running().items()}
    kubeconfig = cluster.kubeconfig().read_bytes()
    await cluster.up()
    assert {name: found.pid for name, found in cluster.running().items()} == before
    assert cluster.kubeconfig().read_bytes() == kubeconfig


async def test_changed_flags_restart_their_component_alone(spare: LocalCluster) -> None:
    before = {name: found.pid for name, found in spare.running().items()}
    changed = LocalCluster(
        spare.name,
        root=spare.layout.root,
        extra_args={"kube-apiserver": ["--event-ttl=30m"]},
    )
    await changed.up()
    after = {name: found.pid for name, found in spare.running().items()}
    assert after["etcd"] == before["etcd"]
    assert after["kube-apiserver"] != before["kube-apiserver"]
    command = spare.running()["kube-apiserver"].process.cmdline()
    assert command[-1] == "--event-ttl=30m"


async def test_a_further_component_runs_with_its_own_flags_until_the_next_start(
    spare: LocalCluster,
) -> None:
    await spare.start("kube-scheduler", ["--kube-api-qps=5000", "--kube-api-burst=5000"])
    command = spare.running()["kube-scheduler"].process.cmdline()
    assert command[-2:] == ["--kube-api-qps=5000", "--kube-api-burst=5000"]
    await spare.up()
    assert spare.pid("kube-scheduler") is None


async def test_a_component_whose_port_was_taken_meanwhile_listens_on_another(
    spare: LocalCluster,
) -> None:
    chosen = spare.remembered()
    assert chosen
    port = chosen.ports["kube-scheduler"]
    with socket.create_server(("127.0.0.1", port)):
        await spare.start("kube-scheduler")
    now = spare.remembered()
    assert now
    assert now.ports["kube-scheduler"] != port
    assert {**now.ports, "kube-scheduler": port} == chosen.ports
    assert ports.listening(spare.running()["kube-scheduler"].process) == now.ports["kube-scheduler"]
    await spare.up()
    assert spare.pid("kube-scheduler") is None


async def test_down_leaves_no_process_no_port_and_no_file(make_cluster: MakeCluster) -> None:
    cluster = make_cluster()
    await cluster.up()
    pids = {running.pid for running in processes.find(cluster.layout.folder)}
    open_ports = listening(pids)
    assert open_ports
    await cluster.down()
    assert not processes.find(cluster.layout.folder)
    assert all(ports.is_free(port) for port in open_ports)
    assert not cluster.layout.folder.exists()
    assert not cluster.layout.lock.exists()
    await cluster.down()


async def test_data_and_ports_are_kept_when_asked_for(spare: LocalCluster) -> None:
    await remember(spare, "kept")
    server = (await status(spare)).server
    await spare.down(keep_data=True)
    assert not processes.find(spare.layout.folder)
    state = spare.remembered()
    assert state
    with (
        socket.create_server(("127.0.0.1", state.ports["kube-apiserver"])),
        pytest.raises(LocalClusterError, match=r"used before.* is in use by .*process \d+"),
    ):
        await LocalCluster(spare.name, root=spare.layout.root).up()
    await spare.up()
    assert await remembers(spare, "kept")
    assert (await status(spare)).server == server


async def test_two_clusters_run_side_by_side(cluster: LocalCluster, spare: LocalCluster) -> None:
    await spare.up()
    await remember(spare, "only-there")
    assert not await remembers(cluster, "only-there")
    mine, theirs = await status(cluster), await status(spare)
    assert mine.healthy
    assert theirs.healthy
    assert mine.server != theirs.server


async def test_two_starts_at_once_give_one_cluster(make_cluster: MakeCluster) -> None:
    one = make_cluster()
    other = make_cluster(one.name)
    await asyncio.gather(one.up(), other.up())
    found = processes.find(one.layout.folder)
    assert sorted(running.component for running in found) == ["etcd", "kube-apiserver"]
    assert (await status(one)).healthy


async def test_a_corrupt_state_file_is_set_aside(spare: LocalCluster) -> None:
    server, etcd = (await status(spare)).server, spare.pid("etcd")
    for damage in (b"{", b"", b'{"v": 1, "name": 7}', b"\xff\x00"):
        spare.layout.state.write_bytes(damage)
        await spare.up()
        found = await status(spare)
        assert found.healthy
        assert (found.server, spare.pid("etcd")) == (server, etcd)
        assert spare.layout.state.with_suffix(".json.corrupt").read_bytes() == damage


async def test_lost_certificates_are_made_anew(spare: LocalCluster) -> None:
    await remember(spare, "from-the-old-times")
    spare.pki.ca.key.unlink()
    await spare.up()
    assert (await status(spare)).healthy
    assert await remembers(spare, "from-the-old-times")


async def test_a_port_in_use_is_told_before_anything_starts(make_cluster: MakeCluster) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        cluster = make_cluster(port=port)
        with pytest.raises(LocalClusterError, match=rf"port {port} is in use.*--port"):
            await cluster.up()
    assert not cluster.layout.folder.exists()
    assert not cluster.running()


async def test_a_component_that_cannot_start_says_why(make_cluster: MakeCluster) -> None:
    cluster = make_cluster(extra_args={"kube-apiserver": ["--no-such-flag"]})
    with pytest.raises(LocalClusterError, match=r"kube-apiserver .*unknown flag: --no-such-flag"):
        await cluster.up()


async def test_a_start_that_was_killed_is_finished_by_the_next(make_cluster: MakeCluster) -> None:
    cluster = make_cluster()
    moments = random.Random(3)
    for lost in ("data", "processes", "nothing"):
        await asyncio.to_thread(start_and_kill, cluster, moments.uniform(0.3, 3.0))
        await cluster.up()
        assert (await status(cluster)).healthy
        found = processes.find(cluster.layout.folder)
        assert sorted(running.component for running in found) == ["etcd", "kube-apiserver"]
        if lost == "data":
            await cluster.down()
        elif lost == "processes":
            for running in found:
                running.process.kill()


def start_and_kill(cluster: LocalCluster, delay: float) -> None:
    """Runs `alnair up` in a process of its own and kills it after some seconds."""
    command = [
        *(sys.executable, "-m", "alnair", "up"),
        *("--name", cluster.name, "--components", "etcd,kube-apiserver"),
    ]
    environment = {**os.environ, "ALNAIR_STATE": str(cluster.layout.root)}
    with subprocess.Popen(command, env=environment, stderr=subprocess.DEVNULL) as process:
        time.sleep(delay)
        process.kill()


async def test_the_schedulers_identity_may_do_its_work_and_no_more(cluster: LocalCluster) -> None:
    connection = client_config.load(cluster.kubeconfig("alnair-scheduler"))
    async with Client(connection, user_agent=TRESPASSER) as client:
        await client.list(NODES)
        with pytest.raises(Forbidden):
            await client.list(CONFIGMAPS)
        with pytest.raises(Forbidden):
            await client.delete(NODES, "some-node")


def test_kubectl_works_with_the_kubeconfig(cluster: LocalCluster) -> None:
    command = ["kubectl", "--kubeconfig", str(cluster.kubeconfig()), "get", "namespaces", "-o=name"]
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("there is no kubectl on PATH")
    assert result.returncode == 0, result.stderr
    assert "namespace/alnair-system" in result.stdout.splitlines()


def test_private_files_are_the_users_alone(cluster: LocalCluster) -> None:
    assert cluster.layout.folder.stat().st_mode & 0o077 == 0
    secrets = [*cluster.layout.pki.glob("*.key"), *cluster.layout.folder.glob("*.kubeconfig")]
    assert len(secrets) > 5
    assert [path for path in secrets if path.stat().st_mode & 0o077] == []


def test_a_folder_with_a_long_name_will_do(tmp_path: Path) -> None:
    root = tmp_path / ("long" * 20) / ("path" * 10)
    cluster = LocalCluster("lc-deep", components=["etcd", "kube-apiserver"], root=root)
    try:
        asyncio.run(cluster.up())
        assert asyncio.run(status(cluster)).healthy
    finally:
        asyncio.run(cluster.down())
