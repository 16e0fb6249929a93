"""The files say what a node on this kind of machine needs, and keep to the cluster's folder."""

import json
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from alnair.local.access.certificates import Pki
from alnair.local.layout import Layout
from alnair.local.real_node import configuration
from alnair.local.real_node.settings import NodeSettings

LAYOUT = Layout(Path("/clusters"), "one")
NODE = NodeSettings(LAYOUT, 7, 2, "h100", 16400)
PKI = Pki(LAYOUT.pki)
PROGRAMS = {"runc": Path("/cache/runc/runc"), "ptp": Path("/cache/cni/ptp")}


@pytest.fixture
def containerd() -> Mapping[str, Any]:
    plugins: dict[str, Any] = tomllib.loads(configuration.containerd(NODE, PROGRAMS))["plugins"]
    return plugins


@pytest.fixture
def kubelet() -> Mapping[str, Any]:
    document: dict[str, Any] = yaml.safe_load(configuration.kubelet(NODE, PKI))
    return document


def test_all_files_are_in_the_clusters_own_folder() -> None:
    paths = configuration.files(NODE, PKI, PROGRAMS)
    assert len(paths) == 12
    assert all(path.is_relative_to(LAYOUT.folder) for path in paths)


def test_containerd_takes_our_programs_and_needs_no_registry(containerd: Mapping[str, Any]) -> None:
    runtime = containerd["io.containerd.cri.v1.runtime"]
    options = runtime["containerd"]["runtimes"]["runc"]["options"]
    assert (options["BinaryName"], options["SystemdCgroup"]) == ("/cache/runc/runc", False)
    assert runtime["cni"]["bin_dirs"] == ["/cache/cni"]
    sandbox = containerd["io.containerd.cri.v1.images"]["pinned_images"]["sandbox"]
    assert sandbox == "alnair.local/pause:local"


def test_a_pod_can_start_without_the_right_to_lower_its_score(
    containerd: Mapping[str, Any],
) -> None:
    assert containerd["io.containerd.cri.v1.runtime"]["restrict_oom_score_adj"] is True


def test_a_shim_is_not_taken_for_containerd(containerd: Mapping[str, Any]) -> None:
    assert containerd["io.containerd.shim.v1.manager"]["env"] == ["ALNAIR_LOCAL_COMPONENT=shim"]


def test_pods_have_addresses_of_the_node_and_a_way_out() -> None:
    ptp, portmap = json.loads(configuration.cni(NODE))["plugins"]
    assert ptp["ipam"]["ranges"] == [[{"subnet": NODE.pod_cidr}]]
    assert ptp["ipam"]["routes"] == [{"dst": "0.0.0.0/0"}]
    assert portmap["backend"] == "nftables"


def test_the_kubelet_keeps_to_its_control_group_and_lets_nobody_in(
    kubelet: Mapping[str, Any],
) -> None:
    assert kubelet["cgroupRoot"] == f"/{NODE.cgroup}"
    assert kubelet["makeIPTablesUtilChains"] is False
    assert kubelet["authentication"]["anonymous"] == {"enabled": False}
    assert kubelet["authorization"] == {"mode": "Webhook"}
    assert kubelet["seccompDefault"] is True


def test_servers_listen_on_the_nodes_address_alone(kubelet: Mapping[str, Any]) -> None:
    proxy = yaml.safe_load(configuration.kube_proxy(NODE))
    assert kubelet["address"] == kubelet["healthzBindAddress"] == NODE.address
    assert proxy["bindAddress"] == NODE.address
    assert proxy["healthzBindAddress"] == f"{NODE.address}:10256"
    assert f"bind {NODE.address}\n" in configuration.corefile(NODE)


def test_the_proxy_sets_no_limit_of_the_machine() -> None:
    conntrack = yaml.safe_load(configuration.kube_proxy(NODE))["conntrack"]
    assert set(conntrack.values()) == {0, "0s"}
