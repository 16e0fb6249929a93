"""Only where their namespace may do pods reach a node's own files or weaken what holds slices."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from alnair.kube.client import STRATEGIC_MERGE, Client
from alnair.kube.errors import Forbidden
from alnair.kube.resources import NAMESPACES, PODS, Manifest
from alnair.model import names
from kit.live.scheduler_process import eventually

SLICE = {names.VGPU_MEMORY: "64"}
UNCONFINED = {"seccompProfile": {"type": "Unconfined"}}
PRIVILEGED = {"privileged": True}


def pod(
    limits: dict[str, str] | None = None, *, inside: Manifest | None = None, **spec: Any
) -> Any:
    """A pod; `inside` is the security context of its container."""
    main = {"name": "main", "image": "none", "resources": {"limits": limits or {}}}
    if inside is not None:
        main["securityContext"] = inside
    meta = {"name": "p"}
    return {"metadata": meta, "spec": {"containers": [main], **spec}}


def host(path: str) -> Manifest:
    return pod(volumes=[{"name": "v", "hostPath": {"path": path}}])


def adds(*capabilities: str) -> Manifest:
    return {"capabilities": {"add": [*capabilities]}}


async def admitted(client: Client, namespace: str, manifest: Manifest) -> Manifest:
    """The pod as the API server would have it."""
    path, query = PODS.collection(namespace), {"dryRun": "All"}
    answer = await client.raw("POST", path, query=query, body=msgspec.json.encode(manifest))
    found: Manifest = msgspec.json.decode(answer)
    return found


REFUSED = [
    *(
        (host(path), f"volume 'v' has hostPath {path}, which leads to the GPU node's own files")
        for path in (
            *("/", "/run", "/run/", "/run/alnair", "//run//./alnair/x", "/var", "/var/run/alnair/"),
            *("/var/lib", "/var/lib/kubelet", "/var/lib/kubelet/device-plugins/kubelet.sock"),
            *("/var/lib/kubelet/pod-resources", "/run/cdi", "/var/run/cdi", "/etc", "/etc/cdi/x"),
            *("/proc/1/root/run/alnair", "/sys/fs/cgroup", "/var/lib/kubelet/pki"),
            *("/run/containerd/containerd.sock", "/var/run/docker.sock", "/run/crio"),
        )
    ),
    (pod(inside=PRIVILEGED), "container 'main' is privileged: only where an administrator"),
    (
        pod(initContainers=[{"name": "i", "image": "none", "securityContext": PRIVILEGED}]),
        "container 'i' is privileged",
    ),
    (pod(hostPID=True), "hostPID shows the processes of the node: only where an administrator"),
    (pod(SLICE, inside=UNCONFINED), "'main' is in a pod that shares a GPU and has the seccomp"),
    (pod(SLICE, securityContext=UNCONFINED), "has the seccomp profile Unconfined"),
    (pod(SLICE, inside=adds("SYS_ADMIN")), "adds one of the capabilities ALL, SYS_ADMIN,"),
    (pod(SLICE, inside=adds("NET_ADMIN", "cap_sys_ptrace")), "adds one of the capabilities"),
]


@pytest.mark.parametrize(("manifest", "sentence"), REFUSED, ids=[case[1] for case in REFUSED])
async def test_a_pod_that_reaches_for_the_node_is_refused(
    client: Client, namespace: str, manifest: Manifest, sentence: str
) -> None:
    with pytest.raises(Forbidden) as refusal:
        await admitted(client, namespace, manifest)
    assert "ValidatingAdmissionPolicy 'host-access.alnair'" in refusal.value.message
    assert sentence in refusal.value.message


ALLOWED = {
    "a folder of the same beginning": host("/run/alnair-other"),
    "a folder beside": host("/var/lib/kubelet-other"),
    "data": host("/data"),
    "a folder of /etc": host("/etc/ssl"),
    "no slice, unconfined": pod(inside=UNCONFINED),
    "no slice, a capability": pod(inside=adds("SYS_PTRACE")),
    "a slice with other capabilities": pod(SLICE, inside=adds("IPC_LOCK", "NET_ADMIN")),
    "a whole GPU": pod({names.GPU: "1"}, inside=UNCONFINED),
    "a profile of the node": pod(
        SLICE, inside={"seccompProfile": {"type": "Localhost", "localhostProfile": "x.json"}}
    ),
}


@pytest.mark.parametrize("case", ALLOWED)
async def test_its_neighbours_are_admitted(client: Client, namespace: str, case: str) -> None:
    await admitted(client, namespace, ALLOWED[case])


async def test_namespaces_of_the_system_and_labelled_ones_may(
    client: Client, make_namespace: Callable[[], Awaitable[str]], namespace: str
) -> None:
    allowed = {"metadata": {"labels": {"ai.centaurus.io/host-access": "allowed"}}}
    await client.merge_patch(NAMESPACES, namespace, allowed)
    reaching = (host("/"), pod(inside=PRIVILEGED), pod(hostPID=True))

    async def is_known() -> bool:
        try:
            await admitted(client, namespace, host("/"))
        except Forbidden:
            return False
        return True

    await eventually(is_known, what="policies go by the namespace's new label")
    for manifest in (*reaching, pod(SLICE, inside=UNCONFINED)):
        await admitted(client, namespace, manifest)
    for manifest in reaching:
        await admitted(client, "alnair-system", manifest)


async def test_a_privileged_container_is_not_let_in_later_either(
    client: Client, namespace: str
) -> None:
    await client.create(PODS, pod(schedulerName="nobody"), namespace)

    async def add(name: str, **more: Any) -> None:
        debugger = {"name": name, "image": "none", **more}
        await client.raw(
            "PATCH",
            PODS.item("p", namespace, "ephemeralcontainers"),
            body=msgspec.json.encode({"spec": {"ephemeralContainers": [debugger]}}),
            content_type=STRATEGIC_MERGE,
        )

    with pytest.raises(Forbidden, match="container 'debugger' is privileged"):
        await add("debugger", securityContext=PRIVILEGED)
    await add("harmless")


async def test_a_pod_with_a_slice_gets_the_seccomp_profile_of_the_runtime(
    client: Client, namespace: str
) -> None:
    async def context(manifest: Manifest) -> Manifest:
        found: Manifest = (await admitted(client, namespace, manifest))["spec"]["securityContext"]
        return found

    default = {"type": "RuntimeDefault"}
    assert await context(pod(SLICE)) == {"seccompProfile": default}
    given = await context(pod(SLICE, securityContext={"runAsUser": 7}))
    assert given == {"runAsUser": 7, "seccompProfile": default}
    first = [{"name": "i", "image": "none", "resources": {"limits": SLICE}}]
    assert await context(pod(initContainers=first)) == {"seccompProfile": default}

    local = {"type": "Localhost", "localhostProfile": "x.json"}
    chosen = await context(pod(SLICE, securityContext={"seccompProfile": local}))
    assert chosen == {"seccompProfile": local}
    for other in (pod(), pod({names.GPU: "1"}), pod({names.VGPU_MEMORY: "0"})):
        assert await context(other) == {}
