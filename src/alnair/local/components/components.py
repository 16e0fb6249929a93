"""The components of a cluster: how each is called, asked whether it is well, and stopped."""

import hashlib
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from alnair.local.access.certificates import Pki
from alnair.local.components.processes import go_settings
from alnair.local.errors import InvalidArgumentError
from alnair.local.layout import Layout
from alnair.local.real_node.settings import NodeSettings

#: etcd listens on a socket in the cluster's private folder: no port, no TLS to pay for, nobody else
#: can open it. The name is relative, because the path of a socket may have about 100 bytes only.
ETCD_SOCKET = "etcd.sock"
_KWOK_STAGES = Path(__file__).parents[1] / "manifests" / "kwok.yaml"
SERVICE_CIDR = "10.96.0.0/16"

#: Everything but our own processes, in the order of starting.
FULL = ("etcd", "kube-apiserver", "kube-controller-manager", "kube-scheduler", "kwok")
#: The least that stores and serves objects: for benchmarks.
BARE = ("etcd", "kube-apiserver")
ALNAIR_SCHEDULER = "alnair-scheduler"
ALNAIR_CONTROLLER = "alnair-controller"
#: Our own processes, of this very program.
OURS = (ALNAIR_SCHEDULER, ALNAIR_CONTROLLER)


@dataclass(frozen=True)
class ClusterSettings:
    """What the command line of a component depends on."""

    layout: Layout
    pki: Pki
    ports: Mapping[str, int]
    programs: Mapping[str, Path]
    """Where the programs are."""
    components: tuple[str, ...]
    """All components of the cluster."""
    node: NodeSettings | None = None
    """Its real node."""


@dataclass(frozen=True)
class Component:
    """One program of the cluster."""

    name: str
    arguments: Callable[[ClusterSettings], list[str]]
    health: str
    """URL to ask, with `{port}`."""
    has_port: bool = True
    stop_seconds: float = 5.0
    """Time for a clean stop before it is killed."""


def _etcd(at: ClusterSettings) -> list[str]:
    url = f"unix://{ETCD_SOCKET}"
    # It insists on a port in what it advertises; for a socket that is a part of the file's name.
    peer = "unix://etcd-peer.sock:0"
    return [
        f"--name={at.layout.name}",
        f"--data-dir={at.layout.etcd_data}",
        f"--listen-client-urls={url}",
        f"--advertise-client-urls={url}:0",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster={at.layout.name}={peer}",
        # Data written survives a kill of etcd, as it is in the kernel's page cache; only a crash of
        # the machine could lose it. A sync per write would cost more than all the rest of a local
        # cluster.
        "--unsafe-no-fsync",
        # A lone member waits this long, in ms, before it elects itself: half of the default.
        "--election-timeout=500",
        "--auto-compaction-mode=periodic",
        "--auto-compaction-retention=5m",
        f"--quota-backend-bytes={8 << 30}",
        "--snapshot-count=50000",
        "--log-level=warn",
    ]


def _kube_apiserver(at: ClusterSettings) -> list[str]:
    # A node or a pod can be made ready by its creator here: nothing is gained by tainting a node
    # until the controller manager has seen it.
    disabled = ["TaintNodesByCondition"]
    if "kube-controller-manager" not in at.components:
        # Nobody would make the default service account that this plugin waits for.
        disabled.append("ServiceAccount")
    server, key = at.pki.server, at.pki.service_account_key
    return [
        f"--etcd-servers=unix://{ETCD_SOCKET}",
        "--bind-address=127.0.0.1",
        f"--secure-port={at.ports['kube-apiserver']}",
        f"--tls-cert-file={server.certificate}",
        f"--tls-private-key-file={server.key}",
        f"--client-ca-file={at.pki.ca.certificate}",
        "--anonymous-auth=false",
        "--authorization-mode=Node,RBAC",
        "--enable-admission-plugins=NodeRestriction",
        f"--disable-admission-plugins={','.join(disabled)}",
        f"--service-account-key-file={key}",
        f"--service-account-signing-key-file={key}",
        "--service-account-issuer=https://kubernetes.default.svc.cluster.local",
        f"--service-cluster-ip-range={SERVICE_CIDR}",
        "--allow-privileged=true",
        *_api_for_pods(at),
        "--profiling=false",
        # Thousands of objects are made at once by few clients; the defaults would refuse them with
        # 429.
        "--max-requests-inflight=1600",
        "--max-mutating-requests-inflight=800",
        "--shutdown-delay-duration=0",
        f"--cert-dir={at.layout.folder / 'kube-apiserver'}",
    ]


def _api_for_pods(at: ClusterSettings) -> list[str]:
    """Where pods find the API server, and how it talks to their kubelet."""
    if at.node is None:
        # The `kubernetes` Service would need an address that is not loopback.
        return ["--advertise-address=127.0.0.1", "--endpoint-reconciler-type=none"]
    client = at.pki.client("kubelet-client")
    return [
        # The node's own: a forwarder there leads to the loopback port here.
        f"--advertise-address={at.node.address}",
        "--endpoint-reconciler-type=lease",
        "--kubelet-preferred-address-types=InternalIP",
        f"--kubelet-client-certificate={client.certificate}",
        f"--kubelet-client-key={client.key}",
        f"--kubelet-certificate-authority={at.pki.ca.certificate}",
    ]


def _delegated(at: ClusterSettings, name: str) -> list[str]:
    """Arguments that a server shares which asks the API server who its callers are."""
    kubeconfig = at.layout.kubeconfig(name)
    server = at.pki.server
    return [
        f"--kubeconfig={kubeconfig}",
        f"--authentication-kubeconfig={kubeconfig}",
        f"--authorization-kubeconfig={kubeconfig}",
        "--authentication-skip-lookup",
        f"--client-ca-file={at.pki.ca.certificate}",
        "--bind-address=127.0.0.1",
        f"--secure-port={at.ports[name]}",
        f"--tls-cert-file={server.certificate}",
        f"--tls-private-key-file={server.key}",
        # One replica: nothing to elect, and no lease to write every two seconds.
        "--leader-elect=false",
        "--profiling=false",
    ]


def _kube_controller_manager(at: ClusterSettings) -> list[str]:
    return [
        *_delegated(at, "kube-controller-manager"),
        "--use-service-account-credentials=true",
        f"--service-account-private-key-file={at.pki.service_account_key}",
        f"--root-ca-file={at.pki.ca.certificate}",
        f"--cluster-signing-cert-file={at.pki.ca.certificate}",
        f"--cluster-signing-key-file={at.pki.ca.key}",
        f"--service-cluster-ip-range={SERVICE_CIDR}",
        "--kube-api-qps=500",
        "--kube-api-burst=1000",
        # It tells kubelets how long to cache secrets, in an annotation of each node that changes
        # with their number: thousands of writes, and nobody reads them here.
        "--controllers=*,-ttl-controller",
        # Who tries an autoscaler sees what it does; the default is 15 s.
        "--horizontal-pod-autoscaler-sync-period=2s",
        *_doubts(at),
    ]


def _doubts(at: ClusterSettings) -> list[str]:
    """When a node that is not heard of counts as lost."""
    if at.node is not None:
        # As in any cluster: a real node can be lost. kwok renews the others' leases.
        return []
    # Simulated nodes send no heartbeat (thousands of leases, renewed for ever, would keep a small
    # machine busy); they stay Ready because nobody doubts them for a year.
    return ["--node-monitor-grace-period=8760h", "--node-monitor-period=10s"]


def _kube_scheduler(at: ClusterSettings) -> list[str]:
    return [*_delegated(at, "kube-scheduler"), "--kube-api-qps=500", "--kube-api-burst=1000"]


def _kwok(at: ClusterSettings) -> list[str]:
    return [
        f"--kubeconfig={at.layout.kubeconfig('kwok')}",
        f"--config={_KWOK_STAGES}",
        "--manage-all-nodes=false",
        "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
        # It renews a lease in a quarter of its time; 0: no leases. The controller manager doubts a
        # node after 50 s, or not at all: see there.
        f"--node-lease-duration-seconds={160 if at.node else 0}",
        # It tells of every pod otherwise.
        "--v=WARN",
        f"--server-address=127.0.0.1:{at.ports['kwok']}",
    ]


def _alnair_scheduler(at: ClusterSettings) -> list[str]:
    kubeconfig = at.layout.kubeconfig(ALNAIR_SCHEDULER)
    return ["scheduler", f"--kubeconfig={kubeconfig}", f"--port={at.ports[ALNAIR_SCHEDULER]}"]


def _alnair_controller(at: ClusterSettings) -> list[str]:
    kubeconfig = at.layout.kubeconfig(ALNAIR_CONTROLLER)
    return ["controller", f"--kubeconfig={kubeconfig}", f"--port={at.ports[ALNAIR_CONTROLLER]}"]


COMPONENTS: dict[str, Component] = {
    component.name: component
    for component in (
        Component("etcd", _etcd, "http://localhost/health", has_port=False),
        Component("kube-apiserver", _kube_apiserver, "https://127.0.0.1:{port}/readyz"),
        Component(
            "kube-controller-manager", _kube_controller_manager, "https://127.0.0.1:{port}/healthz"
        ),
        Component("kube-scheduler", _kube_scheduler, "https://127.0.0.1:{port}/healthz"),
        Component("kwok", _kwok, "http://127.0.0.1:{port}/healthz"),
        Component(ALNAIR_SCHEDULER, _alnair_scheduler, "http://127.0.0.1:{port}/healthz"),
        Component(ALNAIR_CONTROLLER, _alnair_controller, "http://127.0.0.1:{port}/healthz"),
    )
}


def checked(names: Sequence[str]) -> tuple[str, ...]:
    """The components by these names, in the order of starting, with those that all others need.

    Raises:
        InvalidArgumentError: No component has such a name.
    """
    for name in names:
        if name not in COMPONENTS:
            raise InvalidArgumentError(
                f"there is no component {name!r}: choose among {', '.join(COMPONENTS)}"
            )
    return tuple(name for name in COMPONENTS if name in names or name in BARE)


def command(name: str, at: ClusterSettings, extra: Sequence[str] = ()) -> list[str]:
    """Program and arguments of a component; a flag in `extra` overrides the same flag before it."""
    if name in OURS:
        program = [sys.executable, "-m", "alnair"]
    else:
        program = [str(at.programs[name])]
    return [*program, *COMPONENTS[name].arguments(at), *extra]


def digest(name: str, at: ClusterSettings, full_command: Sequence[str]) -> str:
    """Tells the right running component from an outdated one: by command, trust and config."""
    sha = hashlib.sha256("\0".join(full_command).encode())
    if name != "etcd":
        for path in (at.pki.ca.certificate, at.pki.service_account_key):
            sha.update(path.read_bytes())
    if name == "kwok":
        sha.update(_KWOK_STAGES.read_bytes())
    return sha.hexdigest()[:16]


def environment(name: str, at: ClusterSettings) -> dict[str, str]:
    """The environment of a component, without the marks."""
    if name in OURS:
        return dict(os.environ)
    kept = {key: os.environ[key] for key in ("PATH", "TMPDIR", "LANG") if key in os.environ}
    # Their home is the cluster's folder: no component reads or writes a file of the user.
    return {**kept, **go_settings(), "HOME": str(at.layout.folder)}
