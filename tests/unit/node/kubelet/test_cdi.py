"""The files that say what containers get, which are also what the agent remembers by."""

import json
from pathlib import Path

import pytest

from alnair.model.api_types import AssignedGpu
from alnair.node.kubelet.cdi import CdiSpecs, DeviceNode, Edits, Mount, StartedContainer

GOLDEN = Path(__file__).parents[3] / "golden" / "cdi-of-a-slice.json"
STARTED = StartedContainer(
    pod_uid="5f1c3f0e-54b5-4c5b-9c9c-0d1f6d7f2a11",
    namespace="team",
    pod="train",
    container="main",
    parts=(AssignedGpu("GPU-1", 1, 2048, 25, whole=False),),
    device="0011223344556677",
    slices="5f1c3f0e-54b5-4c5b-9c9c-0d1f6d7f2a11-main",
)
EDITS = Edits(
    env=("NVIDIA_VISIBLE_DEVICES=void",),
    device_nodes=(DeviceNode("/dev/nvidia1", "/run/devices/nvidia1"), DeviceNode("/dev/other")),
    mounts=(Mount("/here", "/there"), Mount("/from", "/to", ("rw", "bind"))),
)
FILE = "alnair-0011223344556677.json"


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def test_a_file_is_as_container_runtimes_read_it(tmp_path: Path) -> None:
    CdiSpecs(tmp_path).write(STARTED, EDITS)
    text = (tmp_path / FILE).read_text()
    assert json.loads(text) == json.loads(GOLDEN.read_text())
    assert list(contents(tmp_path)) == [FILE]


def test_the_next_agent_reads_what_was_started(tmp_path: Path) -> None:
    CdiSpecs(tmp_path).write(STARTED, EDITS)
    CdiSpecs(tmp_path).write(
        StartedContainer("uid-2", "team", "two", "main", (), "8899aabbccddeeff"), Edits()
    )
    assert [one.pod for one in CdiSpecs(tmp_path).load()] == ["train", "two"]
    assert CdiSpecs(tmp_path).load()[0] == STARTED


def test_what_has_mig_devices_is_told_from_the_rest(tmp_path: Path) -> None:
    one = StartedContainer("uid-3", "team", "m", "main", (), "0123456789abcdef", mig=("MIG-1",))
    CdiSpecs(tmp_path).write(one, EDITS)
    assert CdiSpecs(tmp_path).load() == [one]


def test_the_folder_is_made_when_it_is_not_there(tmp_path: Path) -> None:
    specs = CdiSpecs(tmp_path / "run" / "cdi")
    assert specs.load() == []
    specs.write(STARTED, EDITS)
    assert specs.load() == [STARTED]


def test_a_runtime_never_sees_half_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    specs = CdiSpecs(tmp_path)
    specs.write(STARTED, EDITS)
    before = contents(tmp_path)
    seen = []
    write = Path.write_bytes

    def watched(path: Path, data: bytes) -> int:
        half = write(path, data[: len(data) // 2])
        seen.append({p.name: p.read_bytes() for p in tmp_path.glob("[!.]*")})
        raise OSError(28, "No space left on device") if half else AssertionError

    monkeypatch.setattr(Path, "write_bytes", watched)
    with pytest.raises(OSError, match="No space left"):
        specs.write(STARTED, Edits())
    assert seen == [before]
    monkeypatch.undo()
    # What the write left is swept away by the next agent; what was there before holds.
    assert CdiSpecs(tmp_path).load() == [STARTED]
    assert contents(tmp_path) == before


def test_writing_the_same_again_touches_nothing(tmp_path: Path) -> None:
    specs = CdiSpecs(tmp_path)
    specs.write(STARTED, EDITS)
    before = (tmp_path / FILE).stat()
    specs.write(STARTED, EDITS)
    assert (tmp_path / FILE).stat() == before
    specs.write(STARTED, Edits())
    assert (tmp_path / FILE).stat().st_ino != before.st_ino


def test_removed_files_are_gone_and_missing_ones_no_fault(tmp_path: Path) -> None:
    specs = CdiSpecs(tmp_path)
    specs.write(STARTED, EDITS)
    specs.remove([STARTED.device, "none"])
    assert specs.load() == []
    assert not contents(tmp_path)


def test_what_is_not_ours_or_damaged_is_passed_over_and_left(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    specs = CdiSpecs(tmp_path)
    specs.write(STARTED, EDITS)
    whole = (tmp_path / FILE).read_bytes()
    foreign = {
        "nvidia.json": b'{"cdiVersion":"0.5.0","kind":"nvidia.com/gpu","devices":[]}',
        ".other.new": b"half",
        "alnair-torn.json": whole[:100],
        "alnair-empty.json": b"",
        "alnair-none.json": b'{"cdiVersion":"0.6.0","kind":"a/b","devices":[]}',
        "alnair-bare.json": whole.replace(b"centaurus.io/started", b"centaurus.io/else"),
        "alnair-note.json": whole.replace(b"pod_uid", b"pod_xid"),
        "alnair-text.json": whole.replace(b"team", b"t\xff\xffm"),
    }
    for name, data in foreign.items():
        (tmp_path / name).write_bytes(data)
    (tmp_path / "alnair-folder.json").mkdir()
    assert CdiSpecs(tmp_path).load() == [STARTED]
    (tmp_path / "alnair-folder.json").rmdir()
    assert contents(tmp_path) == {**foreign, FILE: whole}
    assert {name for name in foreign if f"{name} is not read" in caplog.text} == {
        name for name in foreign if name.startswith("alnair-")
    }


def test_a_folder_that_cannot_be_used_is_said(tmp_path: Path) -> None:
    (tmp_path / "cdi").write_text("")
    with pytest.raises(OSError, match="cdi"):
        CdiSpecs(tmp_path / "cdi").load()
