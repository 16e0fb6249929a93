"""Control groups of this machine: what is read of them is what their processes did."""

import contextlib
import os
import subprocess
import sys
import time
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest

from alnair.local.real_node import cgroups
from alnair.node.cgroups import Proc
from alnair.node.pods.reader import PodsReader
from alnair.profiler.pods.rates import cgroup_rates
from alnair.profiler.samples import CgroupSample, ContainerKey
from kit.fake_cgroups import ID, OTHER

MIB = 1 << 20
#: Seconds of processor time that a process had when it joined its groups.
HAD = "HAD_BEFORE"
#: Burns processor time, holds memory, and then says how much of the time it had in its groups.
PROGRAM = """
import os, sys, time
had = float(os.environ["HAD_BEFORE"])
held = bytearray(96 << 20)
held[::4096] = b"x" * len(held[::4096])
print("ready", flush=True)
while time.process_time() - had < float(sys.argv[1]):
    pass
print(time.process_time() - had, flush=True)
sys.stdin.read()
"""


@pytest.fixture
def kubelet() -> Iterator[str]:
    """Name of a group that a kubelet could have; its pods are made below."""
    root = cgroups.ROOT
    usable = root.exists() and any(os.access(one, os.W_OK) for one in cgroups.hierarchies(root))
    if os.geteuid() != 0 or not usable:
        pytest.skip("control groups that can be written to are needed")
    name = f"alnair-test-{uuid.uuid4().hex[:8]}"
    cgroups.make(name)
    try:
        yield name
    finally:
        cgroups.remove(name)


def group(kubelet: str, pod: str, container: str) -> list[Path]:
    """Make a container's group in all hierarchies."""
    found = []
    for hierarchy in cgroups.hierarchies():
        folder = hierarchy / kubelet / "kubepods" / f"pod{pod}" / container
        for made in reversed([folder, *list(folder.parents)[:2]]):
            made.mkdir(exist_ok=True)
            for limit in ("cpuset.cpus", "cpuset.mems"):
                file = made / limit
                if hierarchy != cgroups.ROOT and file.exists() and not file.read_text().strip():
                    file.write_text((made.parent / limit).read_text())
        found.append(folder)
    return found


@contextlib.contextmanager
def running(
    groups: list[Path], argument: object, program: str = PROGRAM
) -> Iterator["subprocess.Popen[str]"]:
    """A process in the groups from its beginning."""

    def join() -> None:
        for folder in groups:
            (folder / "cgroup.procs").write_text(str(os.getpid()))
        os.environ[HAD] = str(time.process_time())  # in the new process only

    pipe = subprocess.PIPE
    command = [sys.executable, "-c", program, str(argument)]
    with subprocess.Popen(
        command,
        stdin=pipe,
        stdout=pipe,
        text=True,
        preexec_fn=join,  # noqa: PLW1509 (one thread)
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def test_figures_are_what_the_processes_did(kubelet: str) -> None:
    pod = str(uuid.uuid4())
    key = ContainerKey(pod, ID)
    reader = PodsReader(Proc())
    with running(group(kubelet, pod, ID), 3.0) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        before = reader.read().containers[key]
        used = float(process.stdout.readline())
        after = reader.read().containers[key]
        assert isinstance(before, CgroupSample)
        assert after.cpu_ns is not None
        assert after.cpu_ns / 1e9 == pytest.approx(used, rel=0.03)
        rates = cgroup_rates(before, after)
        assert before.cpu_ns is not None
        grown = (after.cpu_ns - before.cpu_ns) / 1e9 / (after.at - before.at)
        assert rates["cpu_cores"] == pytest.approx(grown)
        # Python itself takes some 10 MiB.
        assert 96 * MIB < (after.memory_bytes or 0) < 120 * MIB
        assert (after.memory_peak or 0) >= (after.memory_bytes or 0)
        assert pod not in reader.read().networks, "it is in the node's own network"
    reader.close()


#: Writes 64 MiB past the cache, and reads them again.
WRITER = """
import mmap, os, sys
block = mmap.mmap(-1, 1 << 20)
try:
    file = os.open(sys.argv[1], os.O_RDWR | os.O_CREAT | os.O_DIRECT, 0o600)
except OSError:
    print("no", flush=True)
    sys.exit()
for _ in range(64):
    os.write(file, block)
os.fsync(file)
os.lseek(file, 0, 0)
for _ in range(64):
    os.readv(file, [block])
print("done", flush=True)
sys.stdin.read()
"""


def bytes_of_disks(kubelet: str, file: Path, *, by_groups: bool = False) -> tuple[int, int]:
    """Bytes (read, written) that a reader saw of a container that writes and reads a file."""
    pod = str(uuid.uuid4())
    key = ContainerKey(pod, ID)
    with running(group(kubelet, pod, ID), str(file), program=WRITER) as process:
        assert process.stdout is not None
        reader = PodsReader(Proc())
        if by_groups:  # though they do not count all disks of this machine
            reader._silent = set()
        reader.read()  # the container is new: it has begun at 0, and may be at work by now
        if process.stdout.readline() != "done\n":
            pytest.skip("this file system has no direct writes")
        after = reader.read().containers[key]
    reader.close()
    assert after.io_read is not None
    assert after.io_write is not None
    return after.io_read, after.io_write


def test_bytes_of_disks_are_those_that_were_written_and_read(kubelet: str, tmp_path: Path) -> None:
    # On v1, most kernels do not count them by groups: then it is the processes who tell.
    read, written = bytes_of_disks(kubelet, tmp_path / "file")
    print(read, written)
    assert read == pytest.approx(64 * MIB, rel=0.03)
    assert written == pytest.approx(64 * MIB, rel=0.03)


@pytest.fixture
def limited_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk that groups of v1 count, as somebody limits it: far above what it can do."""
    groups = cgroups.ROOT / "blkio"
    if not (groups / "blkio.throttle.write_bps_device").exists():
        pytest.skip("control groups v1 of disks are needed")
    image = tmp_path / "disk"
    image.touch()
    os.truncate(image, 80 * MIB)
    made = subprocess.run(
        ["losetup", "-f", "--show", str(image)], check=False, capture_output=True, text=True
    )
    if made.returncode:
        pytest.skip(f"no loop device can be made: {made.stderr}")
    disk = Path(made.stdout.strip())
    number = Path(f"/sys/block/{disk.name}/dev").read_text().strip()
    limiting = groups / f"alnair-test-{uuid.uuid4().hex[:8]}"
    limiting.mkdir()
    for file in ("read", "write"):
        (limiting / f"blkio.throttle.{file}_bps_device").write_text(f"{number} {1 << 46}")
    try:
        yield disk
    finally:
        limiting.rmdir()
        subprocess.run(["losetup", "-d", str(disk)], check=True)


def test_bytes_of_a_disk_that_the_groups_count_are_theirs(kubelet: str, limited_disk: Path) -> None:
    read, written = bytes_of_disks(kubelet, limited_disk, by_groups=True)
    print(read, written)
    assert read == pytest.approx(64 * MIB, rel=0.03)
    assert written == pytest.approx(64 * MIB, rel=0.03)


def test_groups_that_go_are_gone_and_those_that_come_are_there(kubelet: str) -> None:
    pod = str(uuid.uuid4())
    reader = PodsReader(Proc())
    first = group(kubelet, pod, ID)
    assert ContainerKey(pod, ID) in reader.read().containers
    for folder in first:
        folder.rmdir()
    group(kubelet, pod, OTHER)
    for _ in range(6):  # as one came for another
        found = reader.read()
    assert {key for key in found.containers if key.pod == pod} == {ContainerKey(pod, OTHER)}
    # Made anew at the old place: what was kept open is of a group that is no more.
    again = group(kubelet, pod, ID)
    with running(again, 0.2) as process:
        assert process.stdout is not None
        for _ in range(2):
            process.stdout.readline()
        for _ in range(6):
            found = reader.read()
        sample = found.containers[ContainerKey(pod, ID)]
        assert (sample.cpu_ns or 0) >= 0.2e9 * 0.97
    reader.close()


#: Makes a network with two ends of a cable, and sends over the cable and to itself.
SENDER = """
import socket, subprocess, sys
for words in ("lo up", "end0 up", "end1 up"):
    if words == "end0 up":
        add = "ip link add end0 type veth peer name end1".split()
        if subprocess.run(add, stderr=subprocess.DEVNULL).returncode:
            sys.exit(1)
        subprocess.run("ip addr add 10.99.0.1/24 brd + dev end0".split(), check=True)
    subprocess.run(["ip", "link", "set", *words.split()], check=True)
print("ready", flush=True)
sys.stdin.readline()
s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
s.setsockopt(socket.SOL_SOCKET, socket.SO_BROADCAST, 1)
for _ in range(1000):
    s.sendto(b"x" * 1000, ("10.99.0.255", 9))
    s.sendto(b"x" * 1000, ("127.0.0.1", 9))
print("sent", flush=True)
sys.stdin.readline()
"""


def test_a_pods_traffic_is_what_it_sent_over_its_cable(kubelet: str) -> None:
    pod = str(uuid.uuid4())
    groups = group(kubelet, pod, ID)

    def join() -> None:
        for folder in groups:
            (folder / "cgroup.procs").write_text(str(os.getpid()))
        os.environ[HAD] = str(time.process_time())  # in the new process only

    pipe = subprocess.PIPE
    with subprocess.Popen(
        ["unshare", "--net", sys.executable, "-c", SENDER],
        stdin=pipe,
        stdout=pipe,
        text=True,
        preexec_fn=join,  # noqa: PLW1509 (one thread)
    ) as process:
        try:
            assert process.stdout is not None
            assert process.stdin is not None
            if process.stdout.readline() != "ready\n":
                pytest.skip("this kernel makes no cable (veth)")
            reader = PodsReader(Proc())
            before = reader.read().networks[pod]
            process.stdin.write("\n")
            process.stdin.flush()
            assert process.stdout.readline() == "sent\n"
            after = reader.read().networks[pod]
        finally:
            process.kill()
    # With the headers of Ethernet, IP and UDP; what it says to itself is no traffic.
    sent = 1000 * (1000 + 14 + 20 + 8)
    assert after.tx - before.tx == pytest.approx(sent, rel=0.03)
    assert after.rx - before.rx == pytest.approx(sent, rel=0.03), "the other end is its own, too"
    reader.close()
