"""Which driver libraries a process has mapped beside the proxy, as /proc tells it."""

from pathlib import Path

import pytest

from alnair.node.vgpu.driver_mappings import (
    AT_ONCE,
    DRIVER,
    DriverMappings,
    FileId,
    Process,
    beside,
    drivers,
    file_id,
)

PROXY = FileId("00:1a", 77)
REST = """\
55d0c0a00000-55d0c0a01000 r-xp 00000000 08:01 11   /usr/bin/python3.11
7f10c0a00000-7f10c0a01000 r-xp 00000000 08:01 12   /usr/lib/libcudart.so.12
7f10d0a00000-7f10d0a01000 rw-p 00000000 00:00 0
7f10e0a00000-7f10e0a01000 r-xp 00000000 00:1a 77   /usr/lib/x86_64-linux-gnu/libcuda.so.1
7f10f0a00000-7f10f0a01000 r-xp 00000000 08:02 78   /run/alnair/driver/libcuda.so.1 (deleted)
"""
COPY = "7f1100a00000-7f1100a01000 r-xp 00000000 08:03 79   /tmp/a b/libcuda.so.550.54 (deleted)\n"
READ = "7f1100a00000-7f1100a01000 r--p 00000000 08:03 79   /tmp/libcuda.so.1\n"


def test_the_drivers_libraries_are_those_mapped_as_code_by_their_name() -> None:
    assert drivers(REST + COPY + READ) == {
        PROXY: "/usr/lib/x86_64-linux-gnu/libcuda.so.1",
        FileId("08:02", 78): DRIVER,
        FileId("08:03", 79): "/tmp/a b/libcuda.so.550.54",
    }
    assert drivers("") == {}
    assert drivers("[vdso]\nnonsense\n") == {}


@pytest.mark.parametrize(
    ("maps", "proxies", "found"),
    [
        (REST, [PROXY], ""),
        (REST + COPY, [PROXY], "/tmp/a b/libcuda.so.550.54"),
        (REST + READ, [PROXY], ""),
        # A library of an agent before this one, or no proxy at all: it is not judged.
        (REST + COPY, [FileId("00:1a", 78)], ""),
        (COPY, [PROXY], ""),
    ],
)
def test_what_is_beside_the_proxy_and_is_not_the_nodes_driver_is_found(
    maps: str, proxies: list[FileId], found: str
) -> None:
    assert beside(drivers(maps), proxies) == found


def test_a_file_has_the_name_that_lists_of_mappings_give_it(tmp_path: Path) -> None:
    path = tmp_path / "libcuda.so.1"
    path.write_bytes(b"\x7fELF")
    found = file_id(path)
    assert found.inode == path.stat().st_ino
    assert ":" in found.device
    with pytest.raises(FileNotFoundError):
        file_id(tmp_path / "none")


class Machine:
    """A /proc with processes whose mappings may change."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.mappings = DriverMappings([PROXY], folder)

    def write(self, pid: int, maps: str) -> Process:
        (self.folder / str(pid)).mkdir(exist_ok=True)
        (self.folder / str(pid) / "maps").write_text(maps)
        return Process(pid, 1000)

    def look(self, now: float, *processes: Process) -> list[str]:
        self.mappings.look(processes, now)
        self.mappings.wait()
        return [self.mappings.beside(one)[0].rpartition("/")[2] for one in processes]


def test_a_new_process_is_looked_at_at_once_and_again_after_a_second(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    one = machine.write(7, REST)
    assert machine.look(10.0, one) == [""]
    machine.write(7, REST + COPY)
    assert machine.look(10.9, one) == [""]
    assert machine.look(11.0, one) == ["libcuda.so.550.54"]
    assert machine.look(12.0, one) == ["libcuda.so.550.54"]
    assert machine.mappings.beside(one)[1] == 11.0
    machine.write(7, REST)
    assert machine.look(13.0, one) == [""]


def test_a_later_process_of_the_same_number_is_another(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    one = machine.write(7, REST + COPY)
    assert machine.look(10.0, one) == ["libcuda.so.550.54"]
    machine.write(7, REST)
    assert machine.look(11.0, Process(7, 2000)) == [""]
    assert machine.mappings.beside(one) == ("", 0.0)


def test_processes_that_are_gone_are_passed_over(tmp_path: Path) -> None:
    assert Machine(tmp_path).look(10.0, Process(9, 1)) == [""]


def test_of_many_processes_some_are_looked_at_each_time_and_all_in_turn(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    many = [machine.write(pid, REST + COPY) for pid in range(1, 2 * AT_ONCE + 1)]
    assert machine.look(10.0, *many).count("") == AT_ONCE
    assert machine.look(11.0, *many).count("") == 0
