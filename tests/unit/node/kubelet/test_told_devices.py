"""What was told the kubelet last is there for the next agent, or nothing is."""

from pathlib import Path

import pytest

from alnair.node.kubelet.plugin_server import PluginDevice
from alnair.node.kubelet.told_devices import NAME, ToldDevices

TOLD = {"test/one": (PluginDevice("a", numa=1), PluginDevice("b", is_healthy=False))}


def test_what_was_noted_is_found_again(tmp_path: Path) -> None:
    ToldDevices(tmp_path).note(TOLD)
    assert ToldDevices(tmp_path).devices == TOLD


def test_what_has_not_changed_is_not_written_again(tmp_path: Path) -> None:
    ToldDevices(tmp_path).note(TOLD)
    again = ToldDevices(tmp_path)
    (tmp_path / NAME).unlink()
    again.note(TOLD)
    assert not (tmp_path / NAME).exists()


@pytest.mark.parametrize("text", ["", "{", '{"v":1}', '{"v":2,"devices":{}}', "\xff"])
def test_a_file_that_cannot_be_used_is_no_file(tmp_path: Path, text: str) -> None:
    (tmp_path / NAME).write_text(text, "latin-1")
    assert ToldDevices(tmp_path).devices == {}


def test_that_it_cannot_be_written_stops_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    found = ToldDevices(tmp_path / "missing")
    found.note(TOLD)
    assert "the next agent will be late at the kubelet" in caplog.text
    assert found.devices == {}
