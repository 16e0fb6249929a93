"""What a component is told of a real node, and of there being none."""

import dataclasses
from pathlib import Path

import pytest

from alnair.local.access.certificates import Pki
from alnair.local.components import components
from alnair.local.components.components import FULL, ClusterSettings
from alnair.local.layout import Layout
from alnair.local.real_node.settings import NodeSettings

LAYOUT = Layout(Path("/clusters"), "one")
PORTS = {name: 16400 + i for i, name in enumerate(FULL)}
SIMULATED = ClusterSettings(
    LAYOUT, Pki(LAYOUT.pki), PORTS, {name: Path("/bin", name) for name in FULL}, FULL
)
REAL = dataclasses.replace(SIMULATED, node=NodeSettings(LAYOUT, 5, 2, "h100", 16401))


@pytest.mark.parametrize(
    ("component", "simulated", "real"),
    [
        ("kube-apiserver", "--advertise-address=127.0.0.1", "--advertise-address=10.213.5.2"),
        ("kube-apiserver", "--endpoint-reconciler-type=none", "--endpoint-reconciler-type=lease"),
        ("kwok", "--node-lease-duration-seconds=0", "--node-lease-duration-seconds=160"),
    ],
)
def test_flags_follow_the_real_node(component: str, simulated: str, real: str) -> None:
    without = components.command(component, SIMULATED)
    with_node = components.command(component, REAL)
    assert simulated in without
    assert simulated not in with_node
    assert real in with_node


def test_a_lost_node_counts_as_soon_as_one_can_be_lost() -> None:
    def patience(at: ClusterSettings) -> list[str]:
        command = components.command("kube-controller-manager", at)
        return [flag for flag in command if flag.startswith("--node-monitor")]

    assert patience(SIMULATED) == ["--node-monitor-grace-period=8760h", "--node-monitor-period=10s"]
    assert patience(REAL) == []


def test_the_api_server_listens_on_loopback_with_a_real_node_too() -> None:
    assert "--bind-address=127.0.0.1" in components.command("kube-apiserver", REAL)


def test_what_the_user_says_to_go_programs_reaches_the_components(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("GOGC", "400")
    monkeypatch.setenv("KUBECONFIG", "/home/somebody/.kube/config")
    found = components.environment("kube-apiserver", SIMULATED)
    assert found["GOGC"] == "400"
    assert "KUBECONFIG" not in found
