"""GPU hours that were held and not used are told by namespace, user and job."""

from pathlib import Path

import pytest

from alnair.history.database import efficiency
from kit.job_history import job_row, life, opened, pod_row, put


def test_hours_that_were_measured_and_not_used_are_wasted_and_no_others(tmp_path: Path) -> None:
    engine = opened(tmp_path)
    ran = {"started": 0.0, "ended": 7200.0, "outcome": "completed"}
    put(
        engine,
        jobs=[job_row("a", "a"), job_row("b", "b", namespace="blue"), job_row("c", "c")],
        pods=[pod_row("a0", "a", **ran), pod_row("b0", "b", **ran), pod_row("c0", "c", **ran)],
        usages=[life("a0", util=25.0), life("b0", util=50.0)],
    )
    with engine.connect() as connection:
        red, blue = efficiency.shares(connection, "namespace", None)
        worst = efficiency.worst(connection, None, 10)
        (ann,) = efficiency.shares(connection, "user", None)
        assert efficiency.shares(connection, "user", 8000.0) == []
    assert (red.name, red.jobs, red.held, red.measured) == ("red", 2, 4.0, 2.0)
    assert (red.used, red.wasted) == (0.5, 1.5)
    assert blue.wasted == pytest.approx(1.0)
    assert ann.wasted == pytest.approx(2.5)
    assert [(job.name, job.wasted) for job in worst] == [("a", 1.5), ("b", 1.0)]
    assert worst[0].usages[0]["pod"] == "a0"
