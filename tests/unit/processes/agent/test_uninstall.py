"""An agent's pod that ends removes its files when Alnair is uninstalled, and only then."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from alnair.kube.errors import ConnectionFailed, Forbidden, NotFound
from alnair.processes.agent.settings import PluginSettings
from alnair.processes.agent.uninstall import clean_up


class Api:
    """Answers one get."""

    def __init__(self, answer: object) -> None:
        self.answer = answer

    async def get(self, *_: object) -> object:
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer


@pytest.mark.parametrize(
    ("answer", "containers", "is_left"),
    [
        (NotFound(404, "NotFound", "gone"), {}, False),
        (Forbidden(403, "Forbidden", "rights are gone"), {}, False),
        ({"metadata": {"deletionTimestamp": "2026-11-23T06:00:00Z"}}, {}, False),
        ({"metadata": {}}, {}, True),
        (ConnectionFailed("no answer"), {}, True),
        (NotFound(404, "NotFound", "gone"), {"c": None}, True),
    ],
)
async def test_files_go_with_the_daemon_set_unless_a_slice_runs(
    tmp_path: Path, answer: object, containers: dict[str, None], is_left: bool
) -> None:
    run, lasting = tmp_path / "run" / "alnair", tmp_path / "lib" / "alnair"
    folder, plugins = run / "agent", tmp_path / "kubelet" / "device-plugins"
    (folder / "library").mkdir(parents=True)
    (lasting / "usage").mkdir(parents=True)
    (lasting / "usage" / "state").touch()
    plugins.mkdir(parents=True)
    note = plugins / "alnair-nvidia.com-gpu.served"
    note.touch()
    (plugins / "kubelet_internal_checkpoint").touch()
    server = SimpleNamespace(folder=folder, containers=containers, damaged={})
    settings = PluginSettings("node", tmp_path / "kubelet")
    await clean_up(
        cast("Any", Api(answer)), cast("Any", server), settings, lasting / "usage", Path("/")
    )
    assert {path.exists() for path in (folder, run, lasting, note)} == {is_left}
    assert (plugins / "kubelet_internal_checkpoint").exists()


async def test_what_others_keep_beside_it_stays(tmp_path: Path) -> None:
    folder = tmp_path / "run" / "alnair" / "agent"
    folder.mkdir(parents=True)
    (folder.parent / "of-another").touch()
    server = SimpleNamespace(folder=folder, containers={}, damaged={})
    gone = Api(NotFound(404, "NotFound", "gone"))
    await clean_up(cast("Any", gone), cast("Any", server), None, None, Path("/"))
    assert [path.name for path in folder.parent.iterdir()] == ["of-another"]
