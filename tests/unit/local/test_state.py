"""Folders, names and the remembered state of a cluster."""

from pathlib import Path

import pytest

from alnair.local import layout, state
from alnair.local.errors import LocalClusterError
from alnair.local.layout import Layout

STATE = state.ClusterState(
    "one", ("etcd", "kube-apiserver"), {"kube-apiserver": 20001}, {"etcd": ("--log-level=info",)}
)


def test_what_was_saved_is_loaded(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    state.save(path, STATE)
    assert state.load(path) == STATE
    assert path.stat().st_mode & 0o077 == 0


def test_a_real_node_is_remembered_and_older_files_have_none(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    real = state.ClusterState("one", (), {}, {}, state.RealNodeState(3, 2, "h100"))
    state.save(path, real)
    assert state.load(path) == real
    path.write_text('{"name": "one", "components": [], "ports": {}, "extra_args": {}, "v": 1}')
    loaded = state.load(path)
    assert loaded is not None
    assert loaded.real_node is None


def test_nothing_is_remembered_of_a_cluster_that_was_never_there(tmp_path: Path) -> None:
    assert state.load(tmp_path / "state.json") is None


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"[]",
        b'{"name": "one"}',
        b'{"name": "one", "components": [], "ports": {"kwok": 99999}}',
        b'{"name": "one", "components": [], "ports": {}, "v": 2}',
        b"\xff",
    ],
)
def test_a_damaged_file_is_set_aside_and_counts_as_none(tmp_path: Path, damage: bytes) -> None:
    path = tmp_path / "state.json"
    path.write_bytes(damage)
    assert state.load(path) is None
    state.set_aside(path)
    assert not path.exists()
    assert (tmp_path / "state.json.corrupt").read_bytes() == damage


@pytest.mark.parametrize("name", ["", "-a", "a-", "A", "a/b", "..", "a" * 41, "a b", "ä"])
def test_a_name_that_is_no_label_is_refused(name: str) -> None:
    with pytest.raises(LocalClusterError, match="is not valid: use"):
        Layout(Path("/clusters"), name)


@pytest.mark.parametrize("name", ["a", "alnair", "my-cluster-2", "a" * 40])
def test_a_label_is_a_name(name: str) -> None:
    assert Layout(Path("/clusters"), name).folder == Path("/clusters") / name


def test_folders_follow_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    assert layout.clusters_folder({}) == Path("/home/me/.local/state/alnair/clusters")
    assert layout.clusters_folder({"XDG_STATE_HOME": "/s"}) == Path("/s/alnair/clusters")
    assert layout.clusters_folder({"ALNAIR_STATE": "/mine", "XDG_STATE_HOME": "/s"}) == Path(
        "/mine"
    )
    assert layout.cache_folder({}) == Path("/home/me/.cache/alnair")
    assert layout.cache_folder({"XDG_CACHE_HOME": "/c"}) == Path("/c/alnair")
    assert layout.cache_folder({"ALNAIR_CACHE": "/mine", "XDG_CACHE_HOME": "/c"}) == Path("/mine")
    # The XDG specification: a relative path is invalid and to be ignored.
    assert layout.cache_folder({"XDG_CACHE_HOME": "c"}) == Path("/home/me/.cache/alnair")


def test_a_write_that_fails_leaves_nothing_behind(tmp_path: Path) -> None:
    path = tmp_path / "file"
    (path / "in-the-way").mkdir(parents=True)
    with pytest.raises(OSError, match="directory"):
        layout.write_atomically(path, b"new")
    assert [one.name for one in tmp_path.iterdir()] == ["file"]
