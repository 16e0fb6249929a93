"""What is found on a node: a folder is its root, and NVML is described."""

import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from alnair.doctor.finding import Finding, Level
from alnair.doctor.node import driver, kubelet, library, mounts, mps, runtime
from alnair.doctor.node.look import NodeLook
from alnair.node.nvml import Nvml, NvmlError, NvmlGpu
from kit.kubelet_sockets import short_folder

ROOT = "overlay / overlay rw 0 0\n"
CGROUP2 = "cgroup2 /sys/fs/cgroup cgroup2 rw 0 0\n"


class DescribedError(Exception):
    def __init__(self, value: int) -> None:
        super().__init__(value)
        self.value = value


class DescribedNvml(Nvml):
    """One GPU; what is not described is not supported."""

    def __init__(self, **says: object) -> None:
        self.driver = "615.36.01"
        self.gpus = (NvmlGpu(0, "GPU-0", "T4", 1 << 34),)
        self.handles = {"GPU-0": 0}
        self._says = says
        self._readers = {}
        self._events = None
        self.api = self

    NVMLError = DescribedError
    NVML_ERROR_NOT_SUPPORTED, NVML_ERROR_FUNCTION_NOT_FOUND, NVML_ERROR_NOT_FOUND = 3, 13, 6
    nvmlEventTypeXidCriticalError = 8  # noqa: N815 (as pynvml has it)

    def nvmlShutdown(self) -> None:  # noqa: N802 (as pynvml has it)
        """Nothing is open."""

    def __getattr__(self, name: str) -> Callable[..., object]:
        def answer(*arguments: object) -> object:
            said = self._says.get(name, DescribedError(3))
            if isinstance(said, Exception):
                raise said
            return said

        return answer


EVERYTHING: dict[str, Any] = {
    "nvmlDeviceGetComputeRunningProcesses": [],
    "nvmlDeviceGetProcessUtilization": DescribedError(6),
    "nvmlDeviceGetSupportedEventTypes": 8,
    "nvmlDeviceGetAccountingMode": 1,
    "nvmlDeviceGetMigMode": (0, 0),
}


@pytest.fixture
def look() -> Iterator[NodeLook]:
    with short_folder() as root:
        (root / "proc/self").mkdir(parents=True)
        folder = Path("/run/alnair/agent")
        yield NodeLook(root, root / "kubelet", folder, Nvml.open, root / "proc")


def only(findings: list[Finding]) -> Finding:
    (finding,) = findings
    return finding


def test_a_driver_that_tells_all_is_well(look: NodeLook) -> None:
    look.opener = lambda: DescribedNvml(**EVERYTHING)
    there, gpu = driver.driver(look)
    assert (there.level, there.what) == (Level.OK, "driver 615.36.01 answers, with 1 GPU")
    assert (gpu.level, gpu.what.rpartition("; ")[2]) == (Level.OK, "accounting is on")


def test_what_a_driver_does_not_tell_is_named(look: NodeLook) -> None:
    look.opener = lambda: DescribedNvml(nvmlDeviceGetMigMode=(1, 1))
    _, mig, lacks = driver.driver(look)
    assert "it is in MIG mode" in mig.what
    assert lacks.level is Level.WARNING
    for word in ("which processes", "its time each process", "XID errors"):
        assert word in lacks.what


def test_no_driver_is_an_error(look: NodeLook) -> None:
    def fail() -> Nvml:
        raise NvmlError("the NVIDIA driver does not answer: not loaded")

    look.opener = fail
    assert only(driver.driver(look)).level is Level.ERROR


@pytest.mark.parametrize(
    ("lines", "level"),
    [
        (CGROUP2, Level.OK),
        ("cgroup /sys/fs/cgroup/memory cgroup rw 0 0\n", Level.WARNING),
        (CGROUP2 + "cgroup /sys/fs/cgroup/memory cgroup rw 0 0\n", Level.WARNING),
        ("", Level.ERROR),
    ],
)
def test_control_groups_are_judged_by_their_version(
    look: NodeLook, lines: str, level: Level
) -> None:
    (look.proc / "self/mounts").write_text(ROOT + lines)
    assert only(mounts.cgroups(look)).level is level


@pytest.mark.parametrize(
    ("lines", "level"),
    [
        ("tmpfs /run tmpfs rw 0 0\n", Level.OK),
        ("tmpfs /run tmpfs rw 0 0\n/dev/sda /run/alnair ext4 rw 0 0\n", Level.WARNING),
        ("/dev/sda /run ext4 rw 0 0\ntmpfs /run tmpfs rw 0 0\n", Level.OK),
        ("tmpfs /runner tmpfs rw 0 0\n", Level.WARNING),
    ],
)
def test_the_agents_folder_is_where_the_nearest_mount_says(
    look: NodeLook, lines: str, level: Level
) -> None:
    (look.proc / "self/mounts").write_text(ROOT + lines)
    assert only(mounts.agent_folder(look)).level is level


@pytest.mark.parametrize(
    ("text", "level", "word"),
    [
        (None, Level.OK, "by default"),
        ("version = 3\n", Level.OK, "takes CDI"),
        ("version = 2\n", Level.WARNING, "enable_cdi"),
        ("version = 2\n[plugins.'io.containerd.grpc.v1.cri']\nenable_cdi = true", Level.OK, "CDI"),
        (
            "version = 3\n[plugins.'io.containerd.cri.v1.runtime']\nenable_cdi = false",
            Level.ERROR,
            "containers get no GPU",
        ),
        (
            "version = 3\n[plugins.'io.containerd.cri.v1.runtime']\ncdi_spec_dirs = ['/etc/cdi']",
            Level.ERROR,
            "lacks /run/cdi",
        ),
        ("version = [", Level.ERROR, "cannot be read"),
    ],
)
def test_containerds_configuration_says_whether_it_takes_devices(
    look: NodeLook, text: str | None, level: Level, word: str
) -> None:
    if text is not None:
        (look.root / "etc/containerd").mkdir(parents=True)
        (look.root / "etc/containerd/config.toml").write_text(text)
    configured, _ = runtime.container_devices(look)
    assert configured.level is level
    assert word in configured.what


def test_a_kubelet_is_asked_on_both_of_its_sockets(look: NodeLook) -> None:
    assert [one.level for one in kubelet.sockets(look)] == [Level.ERROR] * 2
    open_, shut = socket.socket(socket.AF_UNIX), socket.socket(socket.AF_UNIX)
    with open_, shut:
        for name, server in (("device-plugins", open_), ("pod-resources", shut)):
            (look.kubelet / name).mkdir(parents=True)
            server.bind(str(look.kubelet / name / "kubelet.sock"))
        open_.listen()
        listens, refuses = kubelet.sockets(look)
    assert listens.level is Level.OK
    assert refuses.level is Level.ERROR
    assert "does not answer" in refuses.what


@pytest.mark.parametrize(
    ("needs", "has", "level"),
    [
        ("2.17", "2.36", Level.OK),
        ("2.34", "2.36", Level.WARNING),
        ("2.38", "2.36", Level.ERROR),
        ("2.17", None, Level.OK),
    ],
)
def test_a_library_for_a_newer_glibc_than_the_nodes_is_an_error(
    look: NodeLook,
    monkeypatch: pytest.MonkeyPatch,
    needs: str,
    has: str | None,
    level: Level,
) -> None:
    built = look.root / "libalnair_vgpu.so"
    built.write_bytes(b"\x7fELF\0GLIBC_2.2.5\0GLIBC_" + needs.encode() + b"\0libc.so.6\0")
    places = SimpleNamespace(NAME="n", proxy=lambda: built, interposer=lambda: None)
    monkeypatch.setattr(library, "interposer_path", places)
    if has:
        (look.root / "lib64").mkdir()
        said = f"GNU C Library (Debian GLIBC) stable release version {has}.\n"
        (look.root / "lib64/libc.so.6").write_text(said)
    proxy, preload = library.libraries(look)
    assert (proxy.level, preload.level) == (level, Level.ERROR)


def test_mps_that_is_wanted_needs_its_programs_on_the_node(look: NodeLook) -> None:
    assert only(mps.mps(look)).level is Level.OK, "nobody wants it"
    (look.root / "run/alnair/agent/mps").mkdir(parents=True)
    lacks = only(mps.mps(look))
    assert lacks.level is Level.ERROR
    assert "nvidia-cuda-mps-control is in no folder of the node's PATH" in lacks.what
    folder = look.root / "usr/bin"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "nvidia-cuda-mps-control").touch()
    assert "nvidia-cuda-mps-server" in only(mps.mps(look)).what
    (folder / "nvidia-cuda-mps-server").touch()
    assert only(mps.mps(look)).level is Level.OK
