"""In a narrow terminal nothing that tells one row from another is cut."""

import io

import pytest
from rich.console import Console

from alnair.cli.text import cluster_status, installed_components, use_tables
from alnair.live.installed import InstalledComponent
from alnair.live.usage.use import ClusterUse, GpuUse, NodeUse, PodUse
from alnair.local.status import ClusterStatus, ComponentStatus

NAMES = ("alnair-scheduler", "alnair-controller", "kube-controller-manager")
NODES = ("openb-node-0101", "openb-node-0102")
OF_COMPONENT = ("1.36.3", 16081, 22885, 61, 1.5, 355)


def narrow() -> tuple[Console, io.StringIO]:
    written = io.StringIO()
    return Console(file=written, width=60), written


def column(written: str, head: str, next_head: str) -> str:
    """A column with its head, joined over the lines on which it goes on."""
    heads = next(line for line in written.splitlines() if f" {next_head}" in line)
    begin, end = max(heads.find(head), 0), heads.index(f" {next_head}")
    return "".join(line[begin:end].strip() for line in written.splitlines())


def test_components_of_a_local_cluster_are_told_apart() -> None:
    console, written = narrow()
    parts = [ComponentStatus(name, True, "", *OF_COMPONENT) for name in NAMES]
    cluster_status.show(ClusterStatus("one", True, "", "", parts, None, None), console)
    table = written.getvalue().partition("\n\n")[0]
    assert column(table, "COMPONENT", "HEALTH") == "COMPONENT" + "".join(NAMES)
    assert table.count("1.36.3") == table.count("355 MiB") == 3


def test_what_is_installed_and_who_leads_is_told_whole() -> None:
    console, written = narrow()
    leader, version = "alnair-scheduler-786dcd47bd-9xn7f", "0.1.0-ge42d72ebb6f7"
    found = [InstalledComponent(name, 1, 1, [version], leader, 0, "") for name in NAMES[:2]]
    installed_components.show(found, console)
    table = written.getvalue()
    assert column(table, "INSTALLED", "HEALTH") == "INSTALLED" + "".join(NAMES[:2])
    assert column(table, "VERSION", "LEADER") == "VERSION" + version * 2
    assert column(table, "LEADER", "RESTARTS") == "LEADER" + leader * 2


@pytest.mark.parametrize("view", ["nodes", "gpus"])
def test_nodes_of_top_are_told_apart(view: str) -> None:
    console, written = narrow()
    nodes = tuple(NodeUse(one, 8, 3, 12.5, 1024, 655360, 4, "no agent") for one in NODES)
    gpus = tuple(
        GpuUse(one, 1, one, "NVIDIA-H100-80GB-HBM3", 81559, pods=("default/training",))
        for one in NODES
    )
    pods = (PodUse("a", "one", NODES[0], "Job/x", 1.0),)
    use_tables.show(ClusterUse(1, nodes, gpus, pods, ()), view, console)
    assert column(written.getvalue(), "node", "GPU") == "node" + "".join(NODES)
    assert "…" not in written.getvalue()
