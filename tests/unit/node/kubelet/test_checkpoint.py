"""The kubelet's checkpoint, as far as its forms are known."""

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest

from alnair.node.kubelet import checkpoint
from alnair.node.kubelet.checkpoint import CheckpointError
from alnair.sharing.matching.node_state import Allocation
from kit.kubelet_sockets import Kubelet, answer, slots

GOLDEN = Path(__file__).parents[3] / "golden" / "kubelet-checkpoint.json"
POD = "5f1c3f0e-54b5-4c5b-9c9c-0d1f6d7f2a11"
OTHER = "c0a8e0b2-7f0e-4be4-8f1b-3b8d5f6f9e22"


def written(folder: Path, data: Any) -> Path:
    text = data if isinstance(data, bytes) else json.dumps({"Data": data, "Checksum": 1}).encode()
    (folder / checkpoint.NAME).write_bytes(text)
    return folder


def entry(**changes: Any) -> dict[str, Any]:
    return {
        "PodUID": POD,
        "ContainerName": "main",
        "ResourceName": "alnair/vgpu",
        "DeviceIDs": {"-1": ["slot-0"]},
        "AllocResp": "",
        **changes,
    }


def test_a_file_in_the_form_of_kubernetes_1_36_is_read(tmp_path: Path) -> None:
    found = checkpoint.read(written(tmp_path, GOLDEN.read_bytes()))
    assert found == [
        Allocation(
            POD,
            "train",
            "nvidia.com/gpu",
            frozenset({"GPU-0", "GPU-1", "GPU-2"}),
            "ai.centaurus.io/gpu=0011223344556677",
        ),
        Allocation(
            POD,
            "watch",
            "alnair/vgpu",
            frozenset({"slot-0"}),
            "ai.centaurus.io/gpu=8899aabbccddeeff",
        ),
        Allocation(OTHER, "main", "vendor.example/nic", frozenset({"nic0"}), ""),
    ]


def test_the_kubelet_of_the_tests_writes_the_same_form(tmp_path: Path) -> None:
    made = Kubelet(tmp_path)
    made.plugins.mkdir()
    made.give(
        POD,
        "train",
        "nvidia.com/gpu",
        {0: ["GPU-0", "GPU-1"], 1: ["GPU-2"]},
        answer("ai.centaurus.io/gpu=0011223344556677"),
    )
    made.give(
        POD,
        "watch",
        "alnair/vgpu",
        slots(["slot-0"]),
        answer("ai.centaurus.io/gpu=8899aabbccddeeff"),
    )
    ours = json.loads((made.plugins / checkpoint.NAME).read_text())
    real = json.loads(GOLDEN.read_text())
    assert ours["Data"]["PodDeviceEntries"] == real["Data"]["PodDeviceEntries"][:2]
    assert ours.keys() == real.keys()
    assert ours["Data"].keys() == real["Data"].keys()


def test_before_the_first_admission_nothing_is_held(tmp_path: Path) -> None:
    assert checkpoint.read(tmp_path) == []
    for entries in (None, []):
        data = {"PodDeviceEntries": entries, "RegisteredDevices": {}}
        assert checkpoint.read(written(tmp_path, data)) == []


@pytest.mark.parametrize("ids", [None, {}, {"0": None}, {"0": []}])
def test_ids_may_be_none(tmp_path: Path, ids: Any) -> None:
    (found,) = checkpoint.read(written(tmp_path, {"PodDeviceEntries": [entry(DeviceIDs=ids)]}))
    assert found.ids == frozenset()


def test_an_answer_may_be_none(tmp_path: Path) -> None:
    data = {"PodDeviceEntries": [entry(AllocResp=None), entry(ContainerName="two")]}
    assert [(a.container, a.device) for a in checkpoint.read(written(tmp_path, data))] == [
        ("main", ""),
        ("two", ""),
    ]


@pytest.mark.parametrize("age", [-3600, 3600])
def test_a_file_is_read_again_unless_it_is_older_than_a_tick_of_the_clock_and_the_same(
    tmp_path: Path, age: int
) -> None:
    time_ns = time.time_ns() - age * 10**9
    seen = []
    for slot in ("slot-0", "slot-1"):
        written(tmp_path, {"PodDeviceEntries": [entry(DeviceIDs={"-1": [slot]})]})
        os.utime(tmp_path / checkpoint.NAME, ns=(time_ns, time_ns))
        seen += [one.ids for one in checkpoint.read(tmp_path)]
    # Of what is long over, the same inode and time tell that it is the same file.
    assert seen == [{"slot-0"}, {"slot-1" if age < 0 else "slot-0"}]


def test_what_newer_kubelets_may_add_is_passed_over(tmp_path: Path) -> None:
    data = {"PodDeviceEntries": [entry(Claims=["x"])], "Version": {"major": 3}}
    assert len(checkpoint.read(written(tmp_path, data))) == 1


BROKEN = {
    "torn": GOLDEN.read_bytes()[:200],
    "empty": b"",
    "no object": b"[]",
    "another form": b'{"data": {}}',
    "not text": b'{"Data": {"PodDeviceEntries": [{"PodUID": "\xff"}]}}',
    "ids as before 1.20": json.dumps(
        {"Data": {"PodDeviceEntries": [entry(DeviceIDs=["slot-0"])]}}
    ).encode(),
    "an answer that is no message": json.dumps(
        {"Data": {"PodDeviceEntries": [entry(AllocResp="/////w==")]}}
    ).encode(),
    "an answer that is not in base64": json.dumps(
        {"Data": {"PodDeviceEntries": [entry(AllocResp="?")]}}
    ).encode(),
}


@pytest.mark.parametrize("text", BROKEN.values(), ids=BROKEN)
def test_another_form_is_said_with_the_file(tmp_path: Path, text: bytes) -> None:
    with pytest.raises(CheckpointError, match=r"kubelet_internal_checkpoint cannot be read: \S"):
        checkpoint.read(written(tmp_path, text))


def test_a_file_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    (tmp_path / checkpoint.NAME).mkdir()
    with pytest.raises(CheckpointError, match="Is a directory"):
        checkpoint.read(tmp_path)


def test_resources_that_are_served_are_known_with_and_without_healthy_devices(
    tmp_path: Path,
) -> None:
    assert checkpoint.registered(tmp_path) == frozenset()
    written(tmp_path, {"RegisteredDevices": None})
    assert checkpoint.registered(tmp_path) == frozenset()
    written(tmp_path, {"RegisteredDevices": {"a/b": [], "a/c": ["x"], "a/d": None}})
    assert checkpoint.registered(tmp_path) == {"a/b", "a/c", "a/d"}
