"""What the operator tells at /metrics: as documented, and read by Prometheus."""

import re
from pathlib import Path

from alnair.kube.access.connection import Connection
from alnair.kube.client import Client
from alnair.model.elastic_types import ElasticPolicy, GpuWorkers, JobStatus
from alnair.model.training_job import TrainingJob
from alnair.processes.controller.elastic.cache import JobCache
from alnair.processes.controller.elastic.figures import OperatorFigures
from alnair.processes.controller.elastic.operator import TrainingJobOperator
from alnair.processes.controller.elastic.planner import Planner
from alnair.serving.exposition import text_of
from kit.described_metrics import described

PAGE = Path(__file__).parents[5] / "docs" / "reference" / "metrics-of-the-controller.md"


def training(name: str, status: JobStatus) -> TrainingJob:
    return TrainingJob(
        kind="ElasticTorchJob",
        namespace="a",
        name=name,
        uid=name,
        least=1,
        most=4,
        wish=3,
        workers=GpuWorkers(image="i"),
        command=("python",),
        scheduler="alnair-scheduler",
        elastic=ElasticPolicy(),
        status=status,
    )


def page(waiting: int | None) -> str:
    """What is told after things have happened."""
    client = Client(Connection("http://127.0.0.1:1", source="a test"))
    planner = Planner(client, JobCache(client, lambda key: None), lambda key, change: None)
    planner.seconds.observe(0.02)
    planner.resizes["GpusFree"] += 2
    figures = OperatorFigures()
    figures.passes.observe(0.01)
    figures.writes["status"] += 3
    running = JobStatus(phase="Running", target_replicas=2, available_replicas=1)
    jobs = [training("one", running), training("new", JobStatus())]
    return text_of(figures.metrics(planner, jobs, waiting))


def test_the_page_says_what_there_is_and_how_it_goes() -> None:
    text = page(7)
    for sample in (
        'alnair_training_jobs{kind="ElasticTorchJob",phase="Running"} 1.0',
        'alnair_training_jobs{kind="ElasticTorchJob",phase="Created"} 1.0',
        'alnair_training_workers{state="wanted"} 6.0',
        'alnair_training_workers{state="given"} 2.0',
        'alnair_training_workers{state="available"} 1.0',
        'alnair_training_resizes_total{reason="GpusFree"} 2.0',
        'alnair_training_writes_total{verb="status"} 3.0',
        "alnair_training_queue_jobs 7.0",
        "alnair_training_reconcile_duration_seconds_count 1.0",
    ):
        assert sample in text


def test_who_does_not_lead_tells_only_what_it_counted() -> None:
    client = Client(Connection("http://127.0.0.1:1", source="a test"))
    text = text_of(TrainingJobOperator(client).metrics())
    assert "alnair_training_plan_failures_total 0.0" in text
    assert "alnair_training_jobs" not in text


def test_every_metric_is_documented_with_its_type_and_labels_and_no_other() -> None:
    row = re.compile(r"^\| `(alnair_training\w+)` \| (\w+) \| ([^|]*)\|", re.MULTILINE)
    rows = row.findall(PAGE.read_text())
    documented = {
        (name, kind, tuple(re.findall(r"`(\w+)`", labels))) for name, kind, labels in rows
    }
    told = set()
    for line in described(page(7)):
        name, kind, labels, _ = line.split("\t")
        told.add((name, kind, tuple(one for one in labels.split(",") if one and one != "le")))
    assert told == documented
