"""A scheduler that serves as in a pod: over TLS, to whom a real API server allows it."""

import asyncio
import contextlib
import os
import signal
import socket
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest

from alnair.kube.access import client_config
from alnair.kube.client import Client
from alnair.kube.errors import Forbidden
from alnair.kube.resources import (
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    LEASES,
    NAMESPACES,
    PODS,
    SERVICE_ACCOUNTS,
    Manifest,
)
from alnair.live.explaining import ExplainError, explain
from alnair.live.leader import AskError, ask
from alnair.live.scheduler_lease import Lease, lease
from alnair.local.components.components import BARE
from alnair.local.controlplane import LocalCluster
from alnair.model import names
from alnair.serving.access import Access
from kit.command import COMMAND, alnair, last_json
from kit.live.impersonation import client_as
from kit.live.scheduler_process import SchedulerProcess, eventually, pod
from kit.live.shared_clusters import SharedClusters
from kit.ports import free_port

#: For which our server keeps an answer, and the API server one of its own: seconds.
OURS, THEIRS = 10.0, 10.0
#: A busy machine is late.
LATE = 10.0
POD = "alnair-scheduler-7c9d-x2x4z"
RBAC = "rbac.authorization.k8s.io"


def role(name: str, *rules: Manifest) -> Manifest:
    return {"metadata": {"name": name}, "rules": list(rules)}


def binding(name: str, of: str, subject: dict[str, str]) -> Manifest:
    return {
        "metadata": {"name": name},
        "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": of},
        "subjects": [subject],
    }


def user(name: str) -> dict[str, str]:
    return {"kind": "User", "name": name, "apiGroup": RBAC}


def account(name: str) -> dict[str, str]:
    return {"kind": "ServiceAccount", "name": name, "namespace": names.NAMESPACE}


async def prepare(cluster: LocalCluster) -> None:
    """The objects of the chart that matter here, and two accounts for Prometheus."""
    pages = {"nonResourceURLs": ["/metrics"], "verbs": ["get"]}
    debug = {"nonResourceURLs": ["/debug/*", "/metrics"], "verbs": ["get"]}
    async with Client(client_config.load(cluster.kubeconfig())) as admin:
        for name in ("scraper", "stranger", names.DEBUG_ACCOUNT):
            metadata = {"name": name, "namespace": names.NAMESPACE}
            await admin.create(SERVICE_ACCOUNTS, {"metadata": metadata})
        for one in (role("scraper", pages), role("debug", debug)):
            await admin.create(CLUSTER_ROLES, one)
        for one in (
            binding("asks", "system:auth-delegator", user(names.SCHEDULER)),
            binding("scraper", "scraper", account("scraper")),
            binding("debug", "debug", account(names.DEBUG_ACCOUNT)),
        ):
            await admin.create(CLUSTER_ROLE_BINDINGS, one)


@pytest.fixture
def bare(shared_clusters: SharedClusters) -> LocalCluster:
    """Etcd and an API server."""
    return shared_clusters.get("sec", prepare, components=BARE)


@pytest.fixture
async def admin(bare: LocalCluster) -> AsyncIterator[Client]:
    async with Client(client_config.load(bare.kubeconfig())) as client:
        await client.delete_collection(LEASES, names.NAMESPACE)
        yield client


@pytest.fixture
def own_address() -> str:
    """An address of this machine that is not loopback: the API server proxies to no other."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        with contextlib.suppress(OSError):
            probe.connect(("192.0.2.1", 9))  # sends nothing
        address = str(probe.getsockname()[0])
    if address.startswith(("0.", "127.")):
        pytest.skip("this machine has no address but loopback")
    return address


@pytest.fixture
def scheduler(
    bare: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[SchedulerProcess]:
    monkeypatch.setenv("POD_NAME", POD)
    flags = ("--secure-serving", "--host=0.0.0.0", f"--port={free_port()}")
    process = SchedulerProcess(bare, tmp_path, "scheduler-0", *flags)
    yield process
    process.close()
    print(process.log.read_text()[-4000:])


class Pages:
    """What a scraper sees of a process."""

    def __init__(self, port: int) -> None:
        self.root = f"https://127.0.0.1:{port}"

    async def get(self, path: str, **headers: str) -> tuple[int, str]:
        connector = aiohttp.TCPConnector(ssl=False)  # as a scraper with insecure_skip_verify
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            session.get(self.root + path, headers=headers) as answer,
        ):
            return answer.status, await answer.text()

    async def status(self, path: str, token: str) -> int:
        return (await self.get(path, Authorization=f"Bearer {token}"))[0]


async def token(admin: Client, of: str, *audiences: str) -> str:
    made: Any = await admin.create(
        SERVICE_ACCOUNTS,
        {"spec": {"audiences": list(audiences), "expirationSeconds": 600}},
        names.NAMESPACE,
        name=of,
        subresource="token",
    )
    return str(made["status"]["token"])


async def led(admin: Client) -> tuple[Lease, int]:
    """The lease of the scheduler, once it leads, and the port in it."""

    async def leads() -> bool:
        held = await lease(admin)
        return held is not None and bool(held.spec.holder_identity and held.where)

    await eventually(leads)
    held = await lease(admin)
    assert held is not None
    return held, int(held.where.removesuffix("/proxy").rpartition(":")[2])


async def becomes(wanted: int, pages: Pages, path: str, by: str, seconds: float) -> float:
    """Seconds until the answer is this one."""
    began = time.monotonic()

    async def is_so() -> bool:
        return await pages.status(path, by) == wanted

    await eventually(is_so, seconds + LATE, f"{wanted} of {path}")
    return time.monotonic() - began


async def test_health_is_open_and_all_else_asks_who_it_is_and_whether_it_may(
    admin: Client, scheduler: SchedulerProcess
) -> None:
    _, port = await led(admin)
    pages = Pages(port)
    assert (await pages.get("/healthz"))[0] == 200
    assert (await pages.get("/readyz"))[0] == 200
    for path in ("/metrics", "/debug/snapshot", "/debug/explain?pod=a/b", "/no-such", "//healthz"):
        status, text = await pages.get(path)
        assert status == 401, path
        assert "Authorization: Bearer TOKEN" in text
    scraper, stranger = await token(admin, "scraper"), await token(admin, "stranger")
    status, text = await pages.get("/metrics", Authorization=f"Bearer {scraper}")
    assert status == 200
    assert "scheduler_pending_pods" in text
    status, text = await pages.get("/metrics", Authorization=f"Bearer {stranger}")
    assert status == 403
    assert text == (
        "system:serviceaccount:alnair-system:stranger may not get /metrics: a ClusterRole bound to"
        ' it needs nonResourceURLs: ["/metrics"], verbs: ["get"]'
    )
    for path in ("/debug/snapshot", "/no-such", "/%6Detrics/../debug/snapshot"):
        assert await pages.status(path, scraper) == 403, path
    assert await pages.status("/metrics", "made-up") == 401
    assert await pages.status("/metrics", "g\u00fcn") == 401
    assert (await pages.get("/metrics", Authorization="Basic YTpi"))[0] == 401
    # Each header takes only tokens that were made for it: ours is worth nothing at the API server,
    # and one of the API server's own is not to be sent in ours.
    debug = await token(admin, names.DEBUG_ACCOUNT, names.TOKEN_AUDIENCE)
    assert (await pages.get("/metrics", **{names.TOKEN_HEADER: debug}))[0] == 200
    assert (await pages.get("/metrics", **{names.TOKEN_HEADER: scraper}))[0] == 401
    assert await pages.status("/metrics", debug) == 401
    with pytest.raises(aiohttp.ClientError):
        async with aiohttp.ClientSession() as session:
            await session.get(f"http://127.0.0.1:{port}/metrics")


async def test_who_loses_the_right_or_the_account_is_refused_within_the_time_of_the_cache(
    admin: Client, scheduler: SchedulerProcess
) -> None:
    _, port = await led(admin)
    pages = Pages(port)
    scraper, debug = await token(admin, "scraper"), await token(admin, names.DEBUG_ACCOUNT)
    assert await pages.status("/metrics", scraper) == 200
    assert await pages.status("/metrics", debug) == 200
    await admin.delete(CLUSTER_ROLE_BINDINGS, "scraper")
    await admin.delete(SERVICE_ACCOUNTS, names.DEBUG_ACCOUNT, names.NAMESPACE)
    try:
        took = await asyncio.gather(
            becomes(403, pages, "/metrics", scraper, OURS),
            becomes(401, pages, "/metrics", debug, OURS + THEIRS),
        )
        print(f"without the right after {took[0]:.1f} s, without the account {took[1]:.1f} s")
    finally:
        again = binding("scraper", "scraper", account("scraper"))
        await admin.create(CLUSTER_ROLE_BINDINGS, again)
        metadata = {"name": names.DEBUG_ACCOUNT, "namespace": names.NAMESPACE}
        await admin.create(SERVICE_ACCOUNTS, {"metadata": metadata})


async def test_without_the_api_server_nobody_is_let_in_until_it_is_back(
    bare: LocalCluster, admin: Client, scheduler: SchedulerProcess
) -> None:
    _, port = await led(admin)
    pages = Pages(port)
    scraper, other = await token(admin, "scraper"), await token(admin, "stranger")
    assert await pages.status("/metrics", scraper) == 200
    await bare.stop("kube-apiserver", signal.SIGKILL)
    try:
        status, text = await pages.get("/metrics", Authorization=f"Bearer {other}")
        assert status == 503
        assert text.startswith("the API server cannot be asked who you are: ")
        await becomes(503, pages, "/metrics", scraper, OURS)
        assert (await pages.get("/healthz"))[0] == 200
    finally:
        await bare.start("kube-apiserver")
    await becomes(200, pages, "/metrics", scraper, 20.0)


async def test_explain_reaches_a_leader_in_a_pod_through_the_api_server_as_any_user_who_may(
    bare: LocalCluster, admin: Client, scheduler: SchedulerProcess, own_address: str
) -> None:
    held, port = await led(admin)
    assert held.where == f"/api/v1/namespaces/{names.NAMESPACE}/pods/https:{POD}:{port}/proxy"
    manifest = pod(names.NAMESPACE, POD, scheduler="none")
    await admin.create(PODS, manifest)
    status = {"status": {"podIP": own_address, "podIPs": [{"ip": own_address}]}}
    await admin.merge_patch(PODS, POD, status, names.NAMESPACE, subresource="status")
    await admin.create(NAMESPACES, {"metadata": {"name": "team"}})
    await admin.create(PODS, pod("team", "waits"))
    try:
        # The administrator of this cluster has a certificate and no token.
        kubeconfig = ("--kubeconfig", bare.kubeconfig())

        async def is_known() -> bool:
            return (await explain(admin, "team", "waits")).source == "scheduler"

        await eventually(is_known)
        done = alnair("explain", "waits", "-n", "team", "-o", "json", *kubeconfig)
        assert last_json(done)["source"] == "scheduler", done.stderr
        file = bare.layout.folder / "snapshot.json.gz"
        saved = alnair("scheduler", "snapshot", file, *kubeconfig)
        assert saved.returncode == 0, saved.stderr

        reads = role(
            "reads", {"apiGroups": ["*"], "resources": ["*"], "verbs": ["get", "list", "watch"]}
        )
        await admin.create(CLUSTER_ROLES, reads)
        await admin.create(CLUSTER_ROLE_BINDINGS, binding("reads", "reads", user("ann")))
        async with client_as(bare, "ann") as ann:

            async def may_read() -> bool:  # once the API server knows the role
                try:
                    await explain(ann, "team", "waits")
                except (ExplainError, Forbidden):
                    return False
                return True

            await eventually(may_read)
            answer = await explain(ann, "team", "waits")
            assert answer.source == "offline"
            assert "no token of alnair-system/alnair-debug" in answer.notes[0]
            assert "computed here from the API objects" in answer.notes[0]
            makes = role(
                "makes-token",
                {
                    "apiGroups": [""],
                    "resources": ["serviceaccounts/token"],
                    "resourceNames": [names.DEBUG_ACCOUNT],
                    "verbs": ["create"],
                },
                {"apiGroups": [""], "resources": ["pods/proxy"], "verbs": ["get"]},
            )
            await admin.create(CLUSTER_ROLES, makes)
            may = binding("makes-token", "makes-token", user("ann"))
            await admin.create(CLUSTER_ROLE_BINDINGS, may)

            async def is_answered() -> bool:
                return (await explain(ann, "team", "waits")).source == "scheduler"

            await eventually(is_answered)
        # A token of an account that may not read is refused by the scheduler itself.
        await admin.delete(CLUSTER_ROLE_BINDINGS, "debug")

        async def is_refused() -> bool:
            try:
                await ask(admin, held, "/debug/decisions", {}, 5.0)
            except AskError as error:
                return "system:serviceaccount:alnair-system:alnair-debug may not get" in str(error)
            return False

        await eventually(is_refused, OURS + LATE)
        await admin.create(
            CLUSTER_ROLE_BINDINGS, binding("debug", "debug", account(names.DEBUG_ACCOUNT))
        )
    finally:
        await admin.delete(PODS, POD, names.NAMESPACE, grace_seconds=0)
        await admin.delete(PODS, "waits", "team", grace_seconds=0)


async def test_who_may_read_nothing_but_the_pod_is_told_at_once_which_rights_help(
    bare: LocalCluster, admin: Client, scheduler: SchedulerProcess
) -> None:
    await led(admin)
    await admin.create(NAMESPACES, {"metadata": {"name": "lonely"}})
    await admin.create(PODS, pod("lonely", "waits"))
    only = role("only-pods", {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]})
    await admin.create(CLUSTER_ROLES, only)
    await admin.create(CLUSTER_ROLE_BINDINGS, binding("only-pods", "only-pods", user("eve")))
    try:
        async with client_as(bare, "eve") as eve:

            async def is_told() -> bool:
                try:
                    await explain(eve, "lonely", "waits")
                except ExplainError as error:
                    return 'cannot list resource "nodes"' in str(error)
                except Forbidden:
                    pass  # the API server does not know the role yet
                return False

            await eventually(is_told)
    finally:
        await admin.delete(PODS, "waits", "lonely", grace_seconds=0)


@pytest.mark.parametrize("verb", ["controller", "agent"])
async def test_the_controller_and_the_agent_ask_too(
    bare: LocalCluster, admin: Client, tmp_path: Path, verb: str
) -> None:
    port = free_port()
    options = {
        "controller": (f"--port={port}",),
        "agent": (f"--metrics=127.0.0.1:{port}", f"--folder={tmp_path / 'a'}", "--no-probe"),
    }
    if verb == "agent" and os.geteuid():
        pytest.skip("the agent needs root")
    scraper, pages = await token(admin, "scraper"), Pages(port)
    words = (verb, "--secure-serving", f"--kubeconfig={bare.kubeconfig()}", *options[verb])
    process = await asyncio.create_subprocess_exec(*COMMAND, *words)
    try:

        async def is_well() -> bool:
            try:
                return (await pages.get("/healthz"))[0] == 200
            except aiohttp.ClientError:
                return False

        await eventually(is_well)
        assert (await pages.get("/metrics"))[0] == 401
        assert await pages.status("/metrics", scraper) == 200
    finally:
        process.terminate()
        await process.wait()


async def test_a_process_that_may_not_ask_says_which_right_it_lacks(
    bare: LocalCluster, admin: Client
) -> None:
    stranger = await token(admin, "stranger")
    async with client_as(bare, "nobody") as client:
        refused = await Access(client).judge(stranger, "", "get", "/metrics")
    assert refused.status == 503
    assert "bind its account to the ClusterRole system:auth-delegator (" in refused.text


def test_the_lease_of_a_scheduler_can_send_nobody_to_another_path_of_the_api_server() -> None:
    for where in (
        "/api/v1/namespaces/a/secrets/b",
        "/api/v1/namespaces/a/pods/https:b:1/proxy/../../../secrets",
        "/api/v1/namespaces/a/services/https:b:1/proxy",
        "https:b:1",
        "file:///etc/passwd",
    ):
        held = msgspec.convert({"metadata": {"annotations": {names.METRICS_URL: where}}}, Lease)
        assert held.where == "", where
