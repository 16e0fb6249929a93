"""A process's container by its control groups: paths as runtimes really write them."""

import pytest

from alnair.node import cgroups
from alnair.node.cgroups import Cgroup, Mounts

A = "3f4b8c1d" * 8
B = "0a1b2c3d" * 8
UID = "6b2b1f5c-9c3e-4d7f-8a51-0f6f3f0c9e11"
SLICED = UID.replace("-", "_")
HASH = "d41d8cd98f00b204e9800998ecf8427e"

CASES = {
    "containerd, systemd, v2": (
        (
            f"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{SLICED}.slice/"
            f"cri-containerd-{A}.scope"
        ),
        (A, UID),
    ),
    "containerd, systemd, v2, guaranteed": (
        f"0::/kubepods.slice/kubepods-pod{SLICED}.slice/cri-containerd-{A}.scope",
        (A, UID),
    ),
    "containerd, cgroupfs, v2": (f"0::/kubepods/besteffort/pod{UID}/{A}", (A, UID)),
    "containerd, cgroupfs, v1": (
        (
            f"12:memory:/kubepods/burstable/pod{UID}/{A}\n11:cpu,cpuacct:/kubepods/burstable/pod{UID}/"
            f"{A}\n1:name=systemd:/kubepods/burstable/pod{UID}/{A}"
        ),
        (A, UID),
    ),
    "containerd, cgroupfs under a kubelet with systemd": (
        (
            f"11:devices:/system.slice/containerd.service/kubepods-besteffort-pod{SLICED}.slice:"
            f"cri-containerd:{A}"
        ),
        (A, UID),
    ),
    "containerd, v1 with an empty v2 beside": (
        f"4:devices:/kubepods/pod{UID}/{A}\n0::/",
        (A, UID),
    ),
    "CRI-O, systemd, v2": (
        (
            f"0::/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod{SLICED}.slice/"
            f"crio-{A}.scope"
        ),
        (A, UID),
    ),
    "CRI-O with crun's inner group": (
        f"0::/kubepods.slice/kubepods-pod{SLICED}.slice/crio-{A}.scope/container",
        (A, UID),
    ),
    "CRI-O's monitor is not in the container": (
        f"0::/kubepods.slice/kubepods-pod{SLICED}.slice/crio-conmon-{A}.scope",
        ("", UID),
    ),
    "CRI-O, cgroupfs": (f"8:pids:/kubepods/burstable/pod{UID}/crio-{A}", (A, UID)),
    "cri-dockerd, systemd": (
        (
            f"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod{SLICED}.slice/"
            f"docker-{A}.scope"
        ),
        (A, UID),
    ),
    "Docker, systemd": (f"0::/system.slice/docker-{A}.scope", (A, "")),
    "Docker, cgroupfs, v1": (f"9:devices:/docker/{A}\n1:name=systemd:/docker/{A}", (A, "")),
    "Docker with a parent group": (f"0::/batch/job-7/{A}", (A, "")),
    "Podman": (f"0::/machine.slice/libpod-{A}.scope/container", (A, "")),
    "a static pod's uid is a hash": (f"0::/kubepods/burstable/pod{HASH}/{A}", (A, HASH)),
    "kind, seen from inside": (
        (
            "0::/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/"
            f"kubelet-kubepods-burstable-pod{SLICED}.slice/cri-containerd-{A}.scope"
        ),
        (A, UID),
    ),
    "seen from within a cgroup namespace": (
        f"0::/../../kubepods-pod{SLICED}.slice/cri-containerd-{A}.scope",
        (A, UID),
    ),
    "a container within the container belongs to the outer one": (
        f"0::/kubepods/pod{UID}/{A}/docker/{B}",
        (A, UID),
    ),
    "a group below with the name of another pod changes nothing": (
        f"0::/system.slice/docker-{A}.scope/kubepods/pod{UID}/{B}",
        (A, ""),
    ),
    "a service": ("0::/system.slice/kubelet.service", ("", "")),
    "a login": ("0::/user.slice/user-1000.slice/session-3.scope", ("", "")),
    "the root": ("0::/", ("", "")),
    "an id that is too short": (f"0::/docker/{A[:60]}", ("", "")),
    "upper case is no id": (f"0::/docker/{A.upper()}", ("", "")),
}


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES)
def test_a_path_tells_container_and_pod(text: str, expected: tuple[str, str]) -> None:
    found = cgroups.parse(text)
    assert found is not None
    assert (found.container, found.pod) == expected
    assert found.is_below(found.root)


def test_the_root_is_the_containers_group_however_deep_the_process_is() -> None:
    found = cgroups.parse(f"0::/kubepods/pod{UID}/{A}/docker/{B}")
    path = f"/kubepods/pod{UID}/{A}"
    assert found == Cgroup(f"{path}/docker/{B}", path, A, UID)
    assert found.is_below(path)
    assert not found.is_below(path[:-1])


def test_a_node_that_is_a_container_has_its_pods_below_its_own_group() -> None:
    text = f"4:devices:/docker/{B}/kubelet/kubepods/pod{UID}/{A}"
    outer, inner = cgroups.parse(text), cgroups.parse(text, below=f"/docker/{B}")
    assert outer is not None
    assert inner is not None
    assert (outer.container, outer.pod) == (B, "")
    assert (inner.container, inner.pod) == (A, UID)
    assert inner.root.endswith(A)


@pytest.mark.parametrize("text", ["", "\n", "nonsense", "0:", "0::", "0::relative", ":::::"])
def test_what_is_no_cgroup_file_is_nothing(text: str) -> None:
    assert cgroups.parse(text) is None


def test_the_innermost_pid_is_the_one_that_the_process_sees() -> None:
    assert cgroups.ns_pid("Name:\tx\nNSpid:\t4711\t23\t1\nNSsid:\t1\n") == 1
    assert cgroups.ns_pid("Name:\tx\nNSpid:\t4711\n") == 4711
    assert cgroups.ns_pid("Name:\tx\n") == 0


def test_the_start_time_is_read_behind_any_name() -> None:
    rest = " ".join(str(number) for number in range(3, 53))
    assert cgroups.started(f"7 (a) b) c) {rest}") == 22
    assert cgroups.started("7 (gone") == 0


MOUNTINFO = """\
30 24 0:26 / /sys/fs/cgroup ro,nosuid shared:9 - tmpfs tmpfs ro,mode=755
31 30 0:27 / /sys/fs/cgroup/unified rw,nosuid shared:10 - cgroup2 cgroup2 rw
36 30 0:32 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:16 - cgroup cgroup rw,cpu,cpuacct
40 30 0:36 /docker/x /sys/fs/cgroup/devices rw - cgroup cgroup devices
"""


def test_hierarchies_are_found_by_their_mounts() -> None:
    mounts = Mounts.parse(MOUNTINFO)
    assert str(mounts.folder("/a/b")) == "/sys/fs/cgroup/unified/a/b"
    assert str(mounts.folder("/docker/x/y", "devices")) == "/sys/fs/cgroup/devices/y"
    assert mounts.folder("/a", "memory") is None
