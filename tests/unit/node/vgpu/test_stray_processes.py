"""Strays on a node: whose they are by their control groups, and who hears of them."""

import logging
from pathlib import Path

import pytest

from alnair.node.cgroups import Cgroup, Proc
from alnair.node.vgpu.containers.container_slices import OwningPod
from alnair.node.vgpu.stray_processes import StrayProcesses
from alnair.sharing.strays import StrayAction, StrayFound, StrayGone, StrayPolicy
from alnair.sharing.violations import EvictTenant, Process

GPU, OTHER = "GPU-a", "GPU-b"
AGENT, HOLDER, THIEF = (f"6b2b1f5c-9c3e-4d7f-8a51-0f6f3f0c9e1{i}" for i in range(3))
PODS = {
    uid: OwningPod("default", name, uid) for uid, name in ((HOLDER, "holder"), (THIEF, "thief"))
}
HOST = Cgroup("/system.slice/x.service", "/system.slice/x.service")


def place(pod: str) -> Cgroup:
    path = f"/kubepods/pod{pod}/{'3f' * 32}"
    return Cgroup(path, path, "3f" * 32, pod)


def process(pid: int) -> Process:
    return Process(pid, None, registered=False, age=100.0, listed=1.0)


class Node:
    """A node on which one pod holds a whole GPU; what is known of pods may change."""

    def __init__(self, folder: Path, policy: StrayPolicy = StrayPolicy.EVICT) -> None:
        self.told: list[tuple[str, str, StrayAction]] = []
        self.whole: dict[str, frozenset[str]] | None = {HOLDER: frozenset({GPU})}
        self.pods = dict(PODS)
        self.strays = StrayProcesses(
            Proc(folder),
            policy,
            lambda pod, uuid, action: self.told.append((pod.name, uuid, action)),
            whole_gpus=lambda: self.whole,
            pod_of=self.pod_of,
        )

    def pod_of(self, uid: str) -> OwningPod | None:
        return self.pods.get(uid)

    def look(self, now: float, places: dict[int, Cgroup], gpu: str = GPU) -> None:
        self.strays.look(gpu, places, now, process)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    return Node(tmp_path)


def test_a_pod_without_the_gpu_is_found_at_the_third_look_and_evicted(node: Node) -> None:
    places = {7: place(HOLDER), 8: place(THIEF)}
    for second in range(2):
        node.look(second, places)
    assert not node.told
    node.look(2, places)
    node.look(3, places)
    assert [(name, uuid, type(action)) for name, uuid, action in node.told] == [
        ("thief", GPU, StrayFound),
        ("thief", GPU, EvictTenant),
    ]
    assert node.strays.seen == {(GPU, "pod"): 1, (GPU, "host"): 0}
    assert node.strays.confirmed == {GPU: 1}
    del node.pods[THIEF]
    node.look(5, {7: place(HOLDER)})
    assert node.told[2:] == [("thief", GPU, StrayGone())]


def test_a_whole_gpu_is_not_another(node: Node) -> None:
    for second in range(4):
        node.look(second, {7: place(HOLDER)}, OTHER)
    assert [(name, uuid) for name, uuid, _ in node.told] == [("holder", OTHER)] * 2


def test_a_pod_is_not_judged_before_it_is_known(node: Node) -> None:
    del node.pods[THIEF]
    for second in range(10):
        node.look(second, {8: place(THIEF)})
    node.pods = dict(PODS)
    for second in range(10, 12):
        node.look(second, {8: place(THIEF)})
    assert not node.told
    node.look(12, {8: place(THIEF)})
    assert len(node.told) == 2


def test_while_holdings_are_not_known_nobody_is_accused_or_let_off(node: Node) -> None:
    node.whole = None
    for second in range(10):
        node.look(second, {8: place(THIEF)})
    assert node.strays.seen[GPU, "pod"] == 1
    node.whole = {}
    for second in range(10, 14):
        node.look(second, {8: place(THIEF)})
    assert len(node.told) == 2
    node.whole = None
    node.look(14, {})
    assert len(node.told) == 2


def test_who_may_hold_a_gpu_is_not_accused_as_a_container_with_slices(tmp_path: Path) -> None:
    node = Node(tmp_path)
    assert node.strays.may_hold(HOLDER, GPU)
    assert not node.strays.may_hold(HOLDER, OTHER)
    node.whole = None
    assert node.strays.may_hold(HOLDER, OTHER)
    assert not StrayProcesses(Proc(tmp_path)).may_hold(HOLDER, GPU)


def test_programs_of_the_node_and_the_agents_own_pod_are_counted_and_told_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("os.getpid", lambda: 99)
    (tmp_path / "99").mkdir()
    (tmp_path / "99" / "cgroup").write_text(f"0::{place(AGENT).path}\n")
    node = Node(tmp_path)
    with caplog.at_level(logging.INFO):
        for second in range(10):
            node.look(second, {1: HOST, 2: place(AGENT)})
    assert sorted(record.getMessage() for record in caplog.records) == [
        f"process 1 of no pod uses GPU-a: {HOST.path}",
        f"process 2 of no pod uses GPU-a: {place(AGENT).path}",
    ]
    assert node.strays.seen == {(GPU, "pod"): 0, (GPU, "host"): 2}
    assert not node.told


def test_a_gpu_that_is_gone_is_forgotten_with_its_strays(node: Node) -> None:
    for second in range(4):
        node.look(second, {8: place(THIEF)})
    node.strays.forget({GPU})
    assert len(node.told) == 2
    node.strays.forget({OTHER})
    assert node.told[2:] == [("thief", GPU, StrayGone())]
    assert node.strays.seen == {}
