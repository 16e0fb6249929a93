"""The annotation `workload`, byte for byte as the golden file has it."""

from pathlib import Path

import msgspec
import pytest

from alnair.model.api_types import Workload
from alnair.profiler.logs.log_reader import LogFindings
from alnair.profiler.stragglers import Straggler
from alnair.profiler.workload import workload

GOLDEN = (Path(__file__).parents[2] / "golden" / "workload.json").read_text().rstrip("\n")
NOON = "2026-11-21T12:00:00Z"
LOG = LogFindings(
    framework="lightning",
    step=1170,
    epoch=2.0,
    progress=0.25,
    eta_s=1474.0,
    eta_low_s=1380.0,
    eta_high_s=1570.0,
    readings=40,
)


def test_the_golden_file_is_what_the_type_writes() -> None:
    assert msgspec.json.encode(msgspec.json.decode(GOLDEN, type=Workload)).decode() == GOLDEN


def test_findings_become_the_annotation() -> None:
    found = workload(
        NOON,
        period_s=0.42,
        phase="training",
        bottleneck="input-bound",
        log=LOG,
        straggler=Straggler(3, 17, 1.4),
    )
    golden = msgspec.json.decode(GOLDEN, type=Workload)
    assert found is not None
    assert found == msgspec.structs.replace(golden, eta_s=1470.0)  # three digits


def test_what_is_not_known_is_absent_and_nothing_known_is_no_annotation() -> None:
    found = workload(NOON, log=LogFindings(framework="keras", rate=4.0, readings=3))
    assert found is not None
    document = msgspec.json.decode(msgspec.json.encode(found))
    assert document == {
        "v": 1,
        "t": NOON,
        "type": "training",
        "framework": "keras",
        "period_s": 0.25,
    }
    assert workload(NOON) is None
    assert workload(NOON, log=LogFindings(lines=900)) is None


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_figure_that_is_no_number_is_not_written(value: float) -> None:
    assert workload(NOON, period_s=value) is None


def test_busy_is_no_training_while_nothing_says_so() -> None:
    assert workload("now", phase="training") is None
    found = workload("now", phase="training", log=LogFindings(readings=1))
    assert found is not None
    assert found.phase == "training"
    idle = workload("now", phase="idle")
    assert idle is not None
    assert idle.phase == "idle"
