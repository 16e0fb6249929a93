"""Reading on in the files that the runtime keeps of containers."""

from pathlib import Path

from alnair.node.pods.container_logs import ContainerLogs

_AT = "2026-11-23T08:31:42.123456789Z"


def _file(folder: Path, name: str = "0.log") -> Path:
    file = folder / "team_job-0_uid-1" / "main" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    return file


def _write(file: Path, *lines: str, part: bool = False) -> None:
    with file.open("a") as open_file:
        for line in lines:
            open_file.write(f"{_AT} stdout {'P' if part else 'F'} {line}\n")


def _read(logs: ContainerLogs) -> str:
    return b"".join(one.data for one in logs.read("team", "job-0", "uid-1", "main")).decode()


def test_each_line_is_read_once_with_its_time(tmp_path: Path) -> None:
    logs = ContainerLogs(tmp_path)
    assert _read(logs) == ""
    file = _file(tmp_path)
    _write(file, "step 1", "step 2")
    first, second = logs.read("team", "job-0", "uid-1", "main")
    assert (first.at, first.data, second.data) == (_AT, b"step 1\n", b"step 2\n")
    assert _read(logs) == ""
    _write(file, "step 3")
    assert _read(logs) == "step 3\n"


def test_parts_of_a_long_line_are_joined(tmp_path: Path) -> None:
    file = _file(tmp_path)
    _write(file, "a", "b", part=True)
    _write(file, "c")
    assert _read(ContainerLogs(tmp_path)) == "abc\n"


def test_a_line_that_is_being_written_is_read_when_it_is_whole(tmp_path: Path) -> None:
    logs, file = ContainerLogs(tmp_path), _file(tmp_path)
    file.write_text(f"{_AT} stdout F half")
    assert _read(logs) == ""
    with file.open("a") as more:
        more.write(" and half\n")
    assert _read(logs) == "half and half\n"


def test_what_was_written_before_the_file_was_renamed_is_read_first(tmp_path: Path) -> None:
    logs, file = ContainerLogs(tmp_path), _file(tmp_path)
    _write(file, "one")
    assert _read(logs) == "one\n"
    _write(file, "two")
    file.rename(file.with_name("0.log.20261123-083142"))
    _write(_file(tmp_path), "three")
    assert _read(logs) == "two\nthree\n"
    assert _read(logs) == ""


def test_a_container_that_started_again_goes_on_in_its_next_file(tmp_path: Path) -> None:
    logs = ContainerLogs(tmp_path)
    _write(_file(tmp_path), "one")
    assert _read(logs) == "one\n"
    _write(_file(tmp_path), "last words")
    _write(_file(tmp_path, "1.log"), "again")
    _write(_file(tmp_path, "10.log"), "and again")
    assert _read(logs) == "last words\nand again\n"


def test_of_very_much_the_newest_is_read(tmp_path: Path) -> None:
    logs, file = ContainerLogs(tmp_path, most=1000), _file(tmp_path)
    _write(file, *(f"step {number}" for number in range(500)))
    lines = _read(logs).splitlines()
    assert lines[-1] == "step 499"
    assert 0 < len(lines) < 25
    assert all(line.startswith("step 4") for line in lines)


def test_what_is_no_log_of_a_runtime_is_passed_over(tmp_path: Path) -> None:
    file = _file(tmp_path)
    file.write_bytes(b"\xff\x00 nonsense\n\n")
    _write(file, "step 1")
    assert _read(ContainerLogs(tmp_path)) == "step 1\n"


def test_forgotten_pods_are_read_from_the_beginning(tmp_path: Path) -> None:
    logs = ContainerLogs(tmp_path)
    _write(_file(tmp_path), "one")
    assert _read(logs) == "one\n"
    logs.keep({"uid-2"})
    assert _read(logs) == "one\n"
