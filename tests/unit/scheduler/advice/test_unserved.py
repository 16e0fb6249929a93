"""A scheduler name that nobody serves is not said to fit, and near names are named."""

import pytest
from msgspec.structs import replace

from alnair.model import names
from alnair.scheduler.advice.diagnose import diagnose, find
from alnair.scheduler.advice.diagnosis import Diagnosis
from alnair.scheduler.advice.unserved import instead, under_another, unserved
from kit import make
from kit.world import World


def told(name: str, cpu: int = 100, *, gated: bool = False) -> Diagnosis:
    world = World(make.node("a"))
    pod = make.pod("p", make.spec(cpu=cpu), gated=gated)
    world.create(pod)
    world.step(limit=0)
    record = find(world.engine.view, "default", "p")
    assert record is not None
    found = diagnose(world.engine.view, record, world.now)
    known = unserved(replace(pod, scheduler=name), names.SCHEDULERS)
    return under_another(known, names.SCHEDULER, found)


@pytest.mark.parametrize(
    ("name", "near"),
    [
        ("alnair-schedular", ("alnair-scheduler",)),
        ("alnair-cost-savng", ("alnair-cost-saving",)),
        ("Alnair-Scheduler", ("alnair-scheduler",)),
        ("alnair", ("alnair-scheduler", "alnair-cost-saving", "alnair-high-performance")),
        ("volcano", ()),
        ("default-scheduler", ()),
        ("my-scheduler", ()),
    ],
)
def test_near_names_are_named_and_not_every_scheduler_is_near(
    name: str, near: tuple[str, ...]
) -> None:
    found = unserved(make.pod("p", scheduler=name), names.SCHEDULERS).unserved
    assert found is not None
    assert found.near == near
    assert found.served == tuple(sorted(names.SCHEDULERS))


def test_a_pod_that_would_fit_under_another_name_does_not_fit_and_is_told_that_name() -> None:
    found = told("alnair-schedular")
    assert (found.stage, found.fits, found.node) == ("unserved", False, "")
    assert found.scheduler == "alnair-schedular"
    assert found.message == (
        "no scheduler of Alnair serves the name 'alnair-schedular'; "
        "alnair-scheduler would place it on a"
    )
    (change,) = found.changes
    assert (change.kind, change.text, change.node) == (
        "scheduler-name",
        "write spec.schedulerName: alnair-scheduler",
        "a",
    )
    assert "spec.schedulerName: alnair-scheduler (that of a pod cannot" in found.waits_for[0]


def test_a_pod_that_would_not_fit_either_says_both() -> None:
    found = told("volcano", cpu=99_000)
    assert "serves the name 'volcano'; alnair-scheduler would say: 0/1 nodes" in found.message
    assert [change.kind for change in found.changes] == ["request"]


def test_a_gated_pod_stays_gated() -> None:
    found = told("alnair-schedular", gated=True)
    assert found.stage == "gated"
    assert found.waits_for[0] == "its scheduling gates to be removed"
    assert len(found.waits_for) == 2


def test_who_decides_instead_is_said_with_the_near_name() -> None:
    said = instead("alnair-schedular", names.SCHEDULERS, names.SCHEDULER)
    assert said == (
        "no profile here serves its scheduler 'alnair-schedular' "
        "(did you mean alnair-scheduler?): this is what alnair-scheduler would do"
    )
    assert "did you mean" not in instead("volcano", names.SCHEDULERS, names.SCHEDULER)
