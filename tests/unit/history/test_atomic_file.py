"""Files that are written whole."""

import os
from pathlib import Path

import pytest

from alnair.history.atomic_file import write


def test_a_file_is_replaced(tmp_path: Path) -> None:
    for data in (b"one", b"two"):
        write(tmp_path / "file", data)
        assert (tmp_path / "file").read_bytes() == data
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


def test_a_device_is_written_to_and_stays_a_device() -> None:
    reader, writer = os.openpty()
    try:
        device = Path(os.ttyname(writer))
        write(device, b"x")
        assert os.read(reader, 1) == b"x"
        assert device.is_char_device()
    finally:
        os.close(reader)
        os.close(writer)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="Linux has it")
def test_a_full_disk_is_told_with_what_was_to_be_written() -> None:
    with pytest.raises(OSError, match="No space left on device: '/dev/full'"):
        write(Path("/dev/full"), b"x")
