"""What is read of containers and pods, from files as the kernel writes them."""

import shutil
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from alnair.node.cgroups import Proc
from alnair.node.pods.reader import RARELY, PodsReader, PodsReading
from alnair.profiler.samples import CgroupSample, ContainerKey, NetworkSample
from kit.fake_cgroups import ID, OTHER, UID, FakeCgroups

KEY = ContainerKey(UID, ID)
OTHER_UID = "7" * 8 + UID[8:]
DEV = (
    "Inter-|   Receive                                                |  Transmit\n"
    " face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs\n"
    "    lo: 900 9 0 0 0 0 0 0 900 9 0 0 0 0 0 0\n"
    "  eth0:{rx} 9 0 0 0 0 0 0 {tx} 9 0 0 0 0 0 0\n"
)


def later(pods: PodsReader) -> PodsReading:
    """What is read when one group that came for another has been seen."""
    for _ in range(RARELY + 1):
        found = pods.read()
    return found


@pytest.fixture
def reader() -> Callable[..., PodsReader]:
    def make(machine: FakeCgroups, most: int = 100) -> PodsReader:
        return PodsReader(Proc(machine.proc), lambda: 5.0, most)

    return make


@pytest.mark.parametrize("version", [1, 2])
def test_both_versions_say_the_same(
    version: int, tmp_path: Path, reader: Callable[..., PodsReader]
) -> None:
    machine = FakeCgroups(tmp_path, version)
    machine.container()
    found = reader(machine).read()
    assert found.containers == {
        KEY: CgroupSample(
            at=5.0,
            cpu_ns=2_000_000_000,
            periods=10,
            throttled_periods=4,
            throttled_ns=50_000,
            memory_bytes=800_000,
            memory_peak=1_500_000,
            oom_kills=2,
            io_read=111,
            io_write=10,
            pressure={} if version == 1 else {"cpu": 70, "memory": 71, "io": 72},
        )
    }
    assert found.pods == {UID}


def test_what_a_file_does_not_say_is_absent(
    tmp_path: Path, reader: Callable[..., PodsReader]
) -> None:
    machine = FakeCgroups(tmp_path)
    path = machine.container()
    machine.write(path, "cpu.stat", "usage_usec 7\nnr_periods 0\n")
    machine.write(path, "memory.events", "low 0\n")
    (machine.root / path[1:] / "memory.peak").unlink()
    sample = reader(machine).read().containers[KEY]
    assert (sample.cpu_ns, sample.periods) == (7000, None), "without a limit there are no periods"
    assert (sample.oom_kills, sample.memory_peak) == (None, None)


def test_containers_come_and_go_and_are_made_anew(
    tmp_path: Path, reader: Callable[..., PodsReader]
) -> None:
    machine = FakeCgroups(tmp_path)
    path = machine.container()
    pods = reader(machine)
    pods.read()
    machine.container(container=OTHER)
    assert set(later(pods).containers) == {KEY, ContainerKey(UID, OTHER)}
    # Another group at the old path: what is kept open is of the group that is no more.
    aside = machine.root / "aside"
    (machine.root / path[1:]).rename(aside)
    machine.container()
    machine.write(path, "cpu.stat", "usage_usec 3\n")
    assert later(pods).containers[KEY].cpu_ns == 3000
    shutil.rmtree(machine.root / path[1:])
    found = pods.read()
    assert set(found.containers) == {ContainerKey(UID, OTHER)}
    shutil.rmtree(machine.root / "kubepods" / f"pod{UID}")
    assert later(pods).pods == set()


@pytest.mark.parametrize(
    "below",
    [
        "kubepods",
        "kubepods/burstable",
        "node-7/kubepods/besteffort",
        "kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice",
    ],
)
def test_pods_are_found_wherever_a_kubelet_has_them(
    below: str, tmp_path: Path, reader: Callable[..., PodsReader]
) -> None:
    machine = FakeCgroups(tmp_path)
    (machine.root / "system.slice" / "ssh.service").mkdir(parents=True)
    pods = reader(machine)
    assert pods.read().containers == {}
    path = machine.container(below=below)
    # What a container makes in its own group is none, whatever its name.
    (machine.root / path[1:] / f"pod{UID}" / OTHER).mkdir(parents=True)
    assert set(pods.read().containers) == {KEY}


def test_where_hierarchies_differ_the_kernel_is_asked(
    tmp_path: Path, reader: Callable[..., PodsReader]
) -> None:
    machine = FakeCgroups(tmp_path, version=1)
    path = machine.container()
    moved = machine.root / "cpuacct" / "elsewhere"
    moved.mkdir()
    (machine.root / "cpuacct" / "kubepods").rename(moved / "kubepods")
    machine.root.joinpath("memory", path[1:], "cgroup.procs").write_text("17\n")
    (machine.proc / "17").mkdir()
    lines = (f"1:cpuacct:/elsewhere{path}\n", f"2:memory,cpu,blkio:{path}\n")
    (machine.proc / "17" / "cgroup").write_text("".join(lines))
    assert reader(machine).read().containers[KEY].cpu_ns == 2_000_000_000


def test_as_many_files_are_kept_open_as_may_be_and_all_are_read(
    tmp_path: Path, reader: Callable[..., PodsReader]
) -> None:
    machine = FakeCgroups(tmp_path)
    ids = [f"{n:064x}" for n in range(20)]
    for one in ids:
        machine.container(container=one)
    pods = reader(machine, most=30)
    for _ in range(2):
        found = pods.read().containers
        assert {sample.cpu_ns for sample in found.values()} == {2_000_000_000}
        assert len(found) == 20
    machine.write(f"/kubepods/pod{UID}/{ids[-1]}", "cpu.stat", "usage_usec 9\n")
    assert pods.read().containers[ContainerKey(UID, ids[-1])].cpu_ns == 9000
    pods.close()


def test_a_pods_network_is_read_once_and_the_nodes_own_is_not(
    tmp_path: Path, reader: Callable[..., PodsReader]
) -> None:
    machine = FakeCgroups(tmp_path)
    host = "7" * 8 + UID[8:]
    path = machine.container()
    machine.process(17, path, namespace="pod", text=DEV.format(rx=1000, tx=50))
    second = machine.container(container=OTHER)
    machine.process(18, second, namespace="pod", text=DEV.format(rx=1000, tx=50))
    machine.process(19, machine.container(host), namespace="host", text=DEV.format(rx=5, tx=5))
    pods = reader(machine)
    assert pods.read().networks == {UID: NetworkSample(5.0, 1000, 50)}
    # Its process ends; the network is there still, and the file stays readable.
    (machine.proc / "17" / "net" / "dev").write_text(DEV.format(rx=1001, tx=51))
    machine.proc.joinpath("17").rename(machine.proc / "ended")
    assert pods.read().networks == {UID: NetworkSample(5.0, 1001, 51)}


def test_a_network_that_was_made_anew_is_read_from_its_own_file(
    tmp_path: Path, reader: Callable[..., PodsReader]
) -> None:
    machine = FakeCgroups(tmp_path)
    path = machine.container()
    machine.process(17, path, namespace="old", text=DEV.format(rx=1000, tx=50))
    pods = reader(machine)
    pods.read()
    shutil.rmtree(machine.root / path[1:])
    second = machine.container(container=OTHER)
    machine.process(18, second, namespace="new", text=DEV.format(rx=2, tx=1))
    assert later(pods).networks == {UID: NetworkSample(5.0, 2, 1)}


def test_a_machine_without_control_groups_has_no_pods(tmp_path: Path) -> None:
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "mountinfo").write_text("")
    assert PodsReader(Proc(tmp_path), lambda: 0.0, 10).read().containers == {}


def test_what_changes_seldom_is_read_now_and_then(
    tmp_path: Path, reader: Callable[..., PodsReader]
) -> None:
    machine = FakeCgroups(tmp_path, version=1)
    path = machine.container()
    machine.write(path, "cpu.stat", "nr_periods 0\nnr_throttled 0\nthrottled_time 0\n", "cpu")
    pods = reader(machine)
    first = pods.read().containers[KEY]
    assert (first.memory_peak, first.periods) == (1_500_000, None)
    machine.write(path, "memory.max_usage_in_bytes", "1600000\n", "memory")
    machine.write(path, "cpu.stat", "nr_periods 3\nnr_throttled 1\nthrottled_time 5\n", "cpu")
    sample = later(pods).containers[KEY]
    assert (sample.memory_peak, sample.periods, sample.throttled_ns) == (1_600_000, 3, 5)


NO_DISKS = "blkio.throttle.io_service_bytes_recursive"
IO = "rchar: 9\nread_bytes: {read}\nwrite_bytes: {written}\ncancelled_write_bytes: {back}\n"


def io(machine: FakeCgroups, pid: int, read: int, written: int, back: int = 0) -> None:
    text = IO.format(read=read, written=written, back=back)
    (machine.proc / str(pid) / "io").write_text(text)


def test_where_the_kernel_counts_no_disks_by_groups_the_processes_tell(
    tmp_path: Path, reader: Callable[..., PodsReader]
) -> None:
    machine = FakeCgroups(tmp_path, version=1)
    path = machine.container()
    file = machine.root / "blkio" / NO_DISKS
    file.write_text("Total 0\n")
    pods, times = reader(machine), count(1)

    def disks() -> tuple[int | None, int | None]:
        machine.write(path, "cpuacct.usage", f"{next(times)}\n", "cpuacct")
        sample = pods.read().containers[KEY]
        return sample.io_read, sample.io_write

    assert disks() == (None, None), "there is no process"
    for pid, read, written, back in ((17, 100, 50, 0), (18, 5, 70, 20)):
        machine.process(pid, path)
        io(machine, pid, read, written, back)
    assert disks() == (105, 100)
    # One ends, and its parent waits for it: it has what both had.
    machine.write(path, "cgroup.procs", "17\n", "memory")
    io(machine, 17, 105, 120, 20)
    assert disks() == (105, 100)
    io(machine, 17, 106, 130, 20)
    assert disks() == (106, 110)
    # The last one takes it away: nothing is counted twice, and nothing goes backwards.
    machine.process(19, path)
    io(machine, 19, 3, 3)
    machine.write(path, "cgroup.procs", "19\n", "memory")
    assert disks() == (106, 110)


@pytest.mark.parametrize("version", [1, 2])
def test_memory_is_read_when_processor_time_was_used_and_now_and_then(
    version: int, tmp_path: Path, reader: Callable[..., PodsReader]
) -> None:
    machine = FakeCgroups(tmp_path, version)
    path = machine.container()
    file, controller = (
        ("memory.current", "") if version == 2 else ("memory.usage_in_bytes", "memory")
    )
    pods = reader(machine)

    def memory() -> int | None:
        return pods.read().containers[KEY].memory_bytes

    assert [memory(), memory()] == [800_000, 800_000]
    machine.write(path, file, "900000\n", controller)
    assert memory() == 800_000
    if version == 2:
        machine.write(path, "cpu.stat", "usage_usec 2000001\n")
    else:
        machine.write(path, "cpuacct.usage", "2000000001\n", "cpuacct")
    assert memory() == 700_000
    machine.write(path, file, "500000\n", controller)
    assert [memory() for _ in range(RARELY + 1)][-1] == 300_000


def test_groups_tell_of_disks_as_soon_as_the_kernel_counts_them(
    tmp_path: Path, reader: Callable[..., PodsReader]
) -> None:
    machine = FakeCgroups(tmp_path, version=1)
    machine.container()
    file = machine.root / "blkio" / NO_DISKS
    file.write_text("Total 0\n")
    pods = reader(machine)
    assert pods.read().containers[KEY].io_read is None
    stats = " 8 0 sda 1 0 8 0 1 0 8 0 0 0 0\n 8 1 sda1 1 0 8 0 1 0 8 0 0 0 0\n"
    (machine.proc / "diskstats").write_text(f"{stats} 259 0 nvme0n1 1 0 8 0 0 0 0 0 0 0 0\n")
    file.write_text("8:0 Read 5\n8:0 Write 5\nTotal 10\n")
    for _ in range(31):
        found = pods.read()
    assert found.containers[KEY].io_read is None, "only one of two disks is counted"
    (machine.proc / "diskstats").write_text(f"{stats} 259 0 nvme0n1 0 0 0 0 0 0 0 0 0 0 0\n")
    for _ in range(31):
        found = pods.read()
    assert found.containers[KEY].io_read == 111


def test_a_pid_that_is_given_again_does_not_bring_another_pods_network(
    tmp_path: Path, reader: Callable[..., PodsReader]
) -> None:
    machine = FakeCgroups(tmp_path)
    path = machine.container()
    machine.process(17, path, namespace="mine", text=DEV.format(rx=1000, tx=50))
    pods = reader(machine, most=0)  # no file can be kept open
    assert pods.read().networks == {UID: NetworkSample(5.0, 1000, 50)}
    machine.process(
        17, machine.container(OTHER_UID, OTHER), namespace="theirs", text=DEV.format(rx=7, tx=7)
    )
    machine.write(path, "cgroup.procs", "")
    assert UID not in pods.read().networks
