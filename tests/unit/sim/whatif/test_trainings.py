"""Training jobs in a what-if question: with how many workers they would start, and where."""

from typing import Any

import pytest
import yaml

from alnair.cli.text.whatif_answer import lines
from alnair.model.nodes import Node
from alnair.scheduler.engine import events
from alnair.scheduler.profiles import profiles
from alnair.sim.whatif.answer import Answer
from alnair.sim.whatif.changes import Changes
from alnair.sim.whatif.question import ask
from alnair.sim.whatif.submitted import Submission, copies, submission
from alnair.traces.csv_table import TableError
from kit import make

#: A manifest of the original Alnair.
OLD = """
apiVersion: ai.centauruscloud.io/v1alpha1
kind: ElasticHorovodJob
metadata: {name: mnist}
spec:
  launcherSpec: {image: horovod, pythonCommand: [python3, train.py]}
  workersSpec: {image: horovod, minReplicas: 2, maxReplicas: 5}
"""


def read(text: str) -> Submission:
    return submission([("job.yaml", text)], (make.node(),))


def changed(text: str, **workers: Any) -> str:
    manifest = yaml.safe_load(text)
    manifest["spec"]["workersSpec"] |= workers
    return yaml.safe_dump(manifest)


def asked(text: str, *nodes: Node, count: int = 1) -> Answer:
    found = copies(read(text), count)
    changes = Changes(gangs=found.gangs, pods=found.pods, trainings=found.trainings)
    known = [events.NodeChanged(node) for node in nodes]
    return ask(known, profiles(), changes, now=1000.0, horizon=60.0)


def test_a_job_of_the_original_starts_with_as_many_workers_as_fit() -> None:
    answer = asked(OLD, make.node("a", gpus=2), make.node("b", gpus=1))
    (workers,) = answer.workers
    assert (workers.job, workers.least, workers.most, workers.start) == ("default/mnist", 2, 5, 3)
    assert dict(workers.nodes) == {"a": 2, "b": 1}
    assert len(answer.fates) == 3
    assert answer.satisfied
    text = list(lines(answer))
    first = "ElasticHorovodJob default/mnist would start with 3 workers of 2 to 5: "
    assert text[0].startswith(first)
    assert "Insufficient nvidia.com/gpu" in text[1]


def test_with_room_for_all_it_starts_with_its_target() -> None:
    many = make.node("a", gpus=8)
    assert asked(OLD, many).workers[0].start == 5
    assert asked(changed(OLD, targetReplicas=3), many).workers[0].start == 3
    assert not asked(OLD, many).workers[0].why


def test_with_less_room_than_its_minimum_it_waits_whole() -> None:
    answer = asked(OLD, make.node("a", gpus=1))
    assert answer.workers[0].start == 0
    assert [fate.node for fate in answer.fates] == ["", ""]
    assert not answer.satisfied
    assert next(lines(answer)) == (
        "ElasticHorovodJob default/mnist would wait: it needs at least 2 of 2 to 5 workers"
    )


def test_the_second_job_gets_what_the_first_leaves() -> None:
    answer = asked(OLD, make.node("a", gpus=8), count=2)
    assert [(w.job, w.start) for w in answer.workers] == [
        ("default/mnist", 5),
        ("default/mnist-2", 3),
    ]


@pytest.mark.parametrize(
    ("workers", "whole", "slice_mib"),
    [
        ({}, 1, 0),
        ({"gpusPerWorker": 2}, 2, 0),
        ({"gpusPerWorker": 0}, 0, 0),
        ({"gpuSlice": {"memoryMiB": 2048, "computePercent": 30}}, 0, 2048),
    ],
)
def test_workers_ask_for_the_gpus_of_their_job(
    workers: dict[str, Any], whole: int, slice_mib: int
) -> None:
    pod = read(changed(OLD, **workers)).pods[0]
    demand = pod.spec.gpu
    assert (demand.whole if demand else 0) == whole
    assert (demand.memory_mib if demand else 0) == slice_mib


def test_what_restricts_the_workers_is_kept() -> None:
    text = changed(OLD, gpuTypes=["A100"], nodeSelector={"pool": "x"}, resources=None)
    pod = read(text).pods[0]
    assert pod.spec.gpu is not None
    assert pod.spec.gpu.models == ("A100",)
    assert pod.spec.node_selector == (("pool", "x"),)


def test_the_other_kinds_are_read_too() -> None:
    fixed = OLD.replace("ElasticHorovodJob", "HorovodJob").replace(
        "minReplicas: 2, maxReplicas: 5", "replicas: 3"
    )
    (gang,) = read(fixed).gangs
    assert (gang.min_member, gang.elastic_min) == (3, 0)
    torch = yaml.safe_load(OLD)
    torch["kind"] = "ElasticTorchJob"
    del torch["spec"]["launcherSpec"]
    (gang,) = read(yaml.safe_dump(torch)).gangs
    assert (gang.min_member, gang.elastic_min) == (5, 2)


def test_a_suspended_job_starts_with_nothing() -> None:
    manifest = yaml.safe_load(OLD)
    manifest["spec"]["runPolicy"] = {"suspend": True}
    assert asked(yaml.safe_dump(manifest), make.node("a", gpus=8)).workers == ()


@pytest.mark.parametrize(
    ("workers", "path"),
    [
        ({"minReplicas": -1}, "$.spec.workersSpec.minReplicas"),
        ({"maxReplicas": "many"}, "$.spec.workersSpec.maxReplicas"),
        ({"tolerations": ["no"]}, "$.spec.workersSpec.tolerations"),
        ({"gpuSlice": {"memoryMiB": 8}}, "$.spec.workersSpec.gpuSlice.memoryMiB"),
    ],
)
def test_what_is_wrong_is_told_with_its_place(workers: dict[str, Any], path: str) -> None:
    with pytest.raises(TableError) as raised:
        read(changed(OLD, **workers))
    assert path.removeprefix("$.") in str(raised.value)
