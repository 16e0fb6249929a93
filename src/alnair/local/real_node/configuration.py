"""The configuration files of the node's programs: pure text."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from alnair.local.access.certificates import Pki
from alnair.local.components.processes import COMPONENT_MARK
from alnair.local.real_node.images import PAUSE
from alnair.local.real_node.init_script import SYSCTLS
from alnair.local.real_node.settings import (
    DNS_ADDRESS,
    DNS_HEALTH_PORT,
    DOMAIN,
    KUBELET_HEALTH_PORT,
    PROXY_HEALTH_PORT,
    SHIM,
    NodeSettings,
)

CONTAINERD_SOCKET = "/run/containerd/containerd.sock"


def files(node: NodeSettings, pki: Pki, programs: Mapping[str, Path]) -> dict[Path, str]:
    """All files, by their paths.

    Args:
        node: The node.
        pki: The cluster's certificates.
        programs: Where the programs are.
    """
    etc = node.configuration
    written = {
        etc / "containerd.toml": containerd(node, programs),
        etc / "cni" / "10-alnair.conflist": cni(node),
        etc / "kubelet.yaml": kubelet(node, pki),
        etc / "kube-proxy.yaml": kube_proxy(node),
        etc / "Corefile": corefile(node),
        # Names that are none of the cluster's have no answer: nothing here needs the internet.
        etc / "resolv.conf": f"nameserver {node.address}\n",
    }
    for name, value in SYSCTLS.items():
        written[node.folder / "sysctl" / name.replace("/", ".")] = f"{value}\n"
    return written


def containerd(node: NodeSettings, programs: Mapping[str, Path]) -> str:
    """The configuration of containerd, of version 4."""
    quoted = json.dumps  # TOML's strings in double quotes are those of JSON
    return f"""\
version = 4
root = {quoted(str(node.containerd))}
state = "/run/containerd"
imports = []
disabled_plugins = [
  "io.containerd.nri.v1.nri", "io.containerd.snapshotter.v1.blockfile",
  "io.containerd.snapshotter.v1.erofs", "io.containerd.differ.v1.erofs",
]
[plugins."io.containerd.server.v1.grpc"]
address = {quoted(CONTAINERD_SOCKET)}
[plugins."io.containerd.shim.v1.manager"]
# A shim outlives containerd; it must not be taken for it.
env = [{quoted(f"{COMPONENT_MARK}={SHIM}")}]
[plugins."io.containerd.internal.v1.opt"]
path = {quoted(str(node.folder / "opt"))}
[plugins."io.containerd.cri.v1.images".pinned_images]
sandbox = {quoted(PAUSE)}
[plugins."io.containerd.cri.v1.runtime"]
# A machine that is a container itself may not lower a score, not even back to its own.
restrict_oom_score_adj = true
netns_mounts_under_state_dir = true
cdi_spec_dirs = ["/run/cdi"]
enable_criu = false
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
BinaryName = {quoted(str(programs["runc"]))}
Root = "/run/runc"
SystemdCgroup = false
[plugins."io.containerd.cri.v1.runtime".cni]
bin_dirs = [{quoted(str(programs["ptp"].parent))}]
conf_dir = {quoted(str(node.configuration / "cni"))}
"""


def cni(node: NodeSettings) -> str:
    """The pod network: a link of its own for each pod, and ports of the node that lead to pods."""
    return json.dumps(
        {
            "cniVersion": "1.0.0",
            "name": "alnair",
            "plugins": [
                {
                    "type": "ptp",
                    "ipMasq": False,
                    "ipam": {
                        "type": "host-local",
                        "ranges": [[{"subnet": node.pod_cidr}]],
                        "routes": [{"dst": "0.0.0.0/0"}],
                        # Gone with the node, as the pods' networks are.
                        "dataDir": "/run/cni/networks",
                    },
                },
                {
                    "type": "portmap",
                    "capabilities": {"portMappings": True},
                    "snat": True,
                    "backend": "nftables",
                },
            ],
        },
        indent=1,
    )


def kubelet(node: NodeSettings, pki: Pki) -> str:
    """The kubelet's configuration."""
    serving = pki.pair("kubelet-server")
    return _yaml(
        {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "address": node.address,
            "healthzBindAddress": node.address,
            "healthzPort": KUBELET_HEALTH_PORT,
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": True},
                "x509": {"clientCAFile": str(pki.ca.certificate)},
            },
            "authorization": {"mode": "Webhook"},
            "tlsCertFile": str(serving.certificate),
            "tlsPrivateKeyFile": str(serving.key),
            "containerRuntimeEndpoint": f"unix://{CONTAINERD_SOCKET}",
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{node.cgroup}",
            "failCgroupV1": False,
            "failSwapOn": False,
            # kube-proxy does what is needed, in nftables.
            "makeIPTablesUtilChains": False,
            "seccompDefault": True,
            "clusterDNS": [DNS_ADDRESS],
            "clusterDomain": DOMAIN,
            "resolvConf": str(node.configuration / "resolv.conf"),
            # What device plugins offer is told with the node's status: every 10 s by default.
            "nodeStatusUpdateFrequency": "2s",
            "podLogsDir": str(node.pod_logs),
            "volumePluginDir": str(node.folder / "volume-plugins"),
            "staticPodPath": str(node.static_pods),
            # The disk is the user's own: pods go only when next to nothing is left, images never.
            "evictionHard": {
                "memory.available": "64Mi",
                "nodefs.available": "1%",
                "imagefs.available": "1%",
                "nodefs.inodesFree": "1%",
            },
            "imageGCHighThresholdPercent": 100,
            "imageGCLowThresholdPercent": 99,
        }
    )


def kube_proxy(node: NodeSettings) -> str:
    """The configuration of kube-proxy: nftables, in the node's own network."""
    return _yaml(
        {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": "nftables",
            "bindAddress": node.address,
            "healthzBindAddress": f"{node.address}:{PROXY_HEALTH_PORT}",
            "metricsBindAddress": "127.0.0.1:10249",
            "clientConnection": {"kubeconfig": str(node.layout.kubeconfig("kube-proxy"))},
            "clusterCIDR": node.pod_cidr,
            "detectLocalMode": "ClusterCIDR",
            # Limits of the whole machine, which a network namespace may not set.
            "conntrack": {
                "maxPerCore": 0,
                "min": 0,
                "tcpEstablishedTimeout": "0s",
                "tcpCloseWaitTimeout": "0s",
            },
        }
    )


def corefile(node: NodeSettings) -> str:
    """CoreDNS's configuration."""
    return f"""\
.:53 {{
    bind {node.address}
    errors
    health {node.address}:{DNS_HEALTH_PORT}
    ready {node.address}:8181
    kubernetes {DOMAIN} in-addr.arpa ip6.arpa {{
        kubeconfig {node.layout.kubeconfig("coredns")}
        pods verified
        ttl 5
    }}
    cache 5
}}
"""


def _yaml(document: dict[str, Any]) -> str:
    return str(yaml.safe_dump(document, sort_keys=False))
