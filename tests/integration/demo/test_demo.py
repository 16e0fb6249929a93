"""`alnair demo`, as `make demo` runs it, with fewer pods."""

import os
import uuid
from pathlib import Path

import pytest

from kit.command import alnair


def test_the_demo_ends_well_twice_and_leaves_the_cluster_running(
    cluster_root: os.PathLike[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALNAIR_STATE", str(Path(cluster_root)))
    name = f"rp-{uuid.uuid4().hex[:8]}"
    try:
        for _ in range(2):
            done = alnair("demo", "--name", name, "--pods", 60, seconds=280)
            assert done.returncode == 0, done.stdout + done.stderr
            assert "60 pods, 60 of them bound: every promise is kept" in done.stdout
            assert f"alnair down --name {name}" in done.stdout
        status = alnair("status", "--name", name)
        assert status.returncode == 0, status.stdout
        assert "1213 nodes, 60 pods" in status.stdout
    finally:
        alnair("down", "--name", name)
