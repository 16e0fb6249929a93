"""The example of the tutorial, as `alnair demo --real-node` runs it."""

import re
from pathlib import Path

import pytest

from alnair.local.controlplane import LocalCluster
from kit.command import alnair
from kit.live.real_pods import RealPods


async def test_the_demo_shares_a_gpu_twice_and_shows_what_each_pod_got(
    cluster: LocalCluster, pods: RealPods, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALNAIR_STATE", str(cluster.layout.root))
    try:
        for _ in range(2):
            done = alnair("demo", "--real-node", "--name", cluster.name, seconds=280)
            assert done.returncode == 0, done.stdout + done.stderr
            row = r"^(\w+) +(\d+) +(\d+) +(GPU-\S+) +(\d+) +(\d+\.\d)$"
            found = re.findall(row, done.stdout, re.MULTILINE)
            assert [line[0] for line in found] == ["training", "inference"]
            assert [(line[1], line[2]) for line in found] == [("40960", "60"), ("8192", "30")]
            assert [line[4] for line in found] == ["40960", "8192"]
            assert len({line[3] for line in found}) == 1
            assert "inference asked for more memory than it has, and read: " in done.stdout
            assert "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY" in done.stdout
            assert f"alnair down --name {cluster.name}" in done.stdout
    finally:
        await pods.delete("training", "inference")


def test_without_a_machine_for_it_the_demo_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALNAIR_STATE", str(tmp_path))
    monkeypatch.setenv("ALNAIR_CACHE", "/run/alnair-cache")
    done = alnair("demo", "--real-node", "--name", "nowhere")
    assert done.returncode == 1
    assert "/run/alnair-cache lies in /run, which a real node replaces by its own" in done.stderr
    assert not list(tmp_path.iterdir())
