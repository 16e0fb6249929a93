"""What the writer makes of pods that it sees, before anything is asked of a server."""

from pathlib import Path
from typing import Any, cast

import msgspec

from alnair.kube.client import Client
from alnair.live.recording.record_lines import PodWire
from alnair.model import names
from alnair.model.owners import OwnerRef
from alnair.processes.controller.history.seen import PodSeen, SeePods
from alnair.processes.controller.history.store import Store
from alnair.processes.controller.history.writer import LifeWriter

GROUP = OwnerRef("scheduling.x-k8s.io", "v1alpha1", "PodGroup", "red", "gang", "group-uid")


def seen(**meta: Any) -> PodSeen:
    pod = {
        "metadata": {"name": "p", "namespace": "red", "uid": "u", **meta},
        "spec": {"containers": [{"name": "c"}]},
        "status": {"phase": "Running"},
    }
    return SeePods()(msgspec.convert(pod, PodWire))


def writer(tmp_path: Path) -> LifeWriter:
    nobody = cast("Client", None)
    groups = {("red", "gang"): GROUP}
    store = Store(str(tmp_path / "history.db"))
    return LifeWriter(nobody, store, lambda *key: groups.get(key))


def test_a_lone_pod_of_a_gang_is_its_pod_groups(tmp_path: Path) -> None:
    labels = {names.POD_GROUP_LABEL: "gang"}
    assert writer(tmp_path)._bottom(seen(labels=labels)).controller == GROUP
    other = {names.POD_GROUP_LABEL: "none"}
    assert writer(tmp_path)._bottom(seen(labels=other)).controller is None


def test_a_pod_of_a_gang_that_something_controls_is_that_ones(tmp_path: Path) -> None:
    owner = {
        "apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "job-uid", "controller": True,
    }  # fmt: skip
    pod = seen(labels={names.POD_GROUP_LABEL: "gang"}, ownerReferences=[owner])
    found = writer(tmp_path)._bottom(pod).controller
    assert found is not None
    assert (found.group, found.kind, found.uid) == ("batch", "Job", "job-uid")
