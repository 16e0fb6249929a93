"""The journal: what was written is read, and anything else is refused in words."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alnair.node.vgpu.containers.container_slices import (
    ContainerMatch,
    ContainerSlices,
    OwningPod,
    Share,
)
from alnair.node.vgpu.containers.journal import (
    ControlGroup,
    Entry,
    Journal,
    JournalError,
    decode,
    encode,
)

ENTRIES = (
    Entry(
        ContainerSlices(
            "a",
            ContainerMatch(pod="u-1"),
            (Share("GPU-1", 1024, 50, soft=True),),
            OwningPod("ns", "p", "u-1", "c"),
        ),
        3,
        ControlGroup("/kubepods/podu-1/c", "devices", "c" * 64),
    ),
    Entry(
        ContainerSlices("b", ContainerMatch(cgroup="/b"), (Share("GPU-2"),), keep=True),
        1,
        message="why not",
    ),
)


def test_what_was_written_is_read() -> None:
    assert decode(encode(ENTRIES)) == ENTRIES
    assert decode(encode(())) == ()


@given(st.data())
def test_any_other_bytes_are_refused(data: st.DataObject) -> None:
    good = encode(ENTRIES)
    at = data.draw(st.integers(0, len(good) - 1))
    if data.draw(st.booleans()):
        bad = good[:at]
    else:
        bad = good[:at] + bytes([good[at] ^ data.draw(st.integers(1, 255))]) + good[at + 1 :]
    if at == len(good) - 1:
        return  # the last line's end says nothing
    with pytest.raises(JournalError):
        decode(bad)


def test_another_version_is_named() -> None:
    with pytest.raises(JournalError, match="of version 2, this server knows 1"):
        decode(encode(ENTRIES).replace(b"journal 1 ", b"journal 2 ", 1))


def test_what_a_killed_server_left_beside_it_is_not_read(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    assert journal.load() == ()
    journal.save(ENTRIES[:1])
    (tmp_path / "journal.new").write_bytes(encode(ENTRIES)[:40])
    assert Journal(tmp_path).load() == ENTRIES[:1]
    assert [path.name for path in tmp_path.iterdir()] == ["journal"]
    assert journal.path.stat().st_mode & 0o777 == 0o600


def test_what_did_not_change_is_not_written_again(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    journal.save(ENTRIES)
    before = journal.path.stat().st_ino
    journal.save(ENTRIES)
    assert journal.path.stat().st_ino == before
