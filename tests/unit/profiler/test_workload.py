"""The annotation `workload`, byte for byte as the golden file has it."""

from pathlib import Path

import msgspec
import pytest

from alnair.model.api_types import Workload
from alnair.model.job_facts import CudaCalls, Figure, InputFacts, InputPlace, ModelFacts, Name
from alnair.profiler.logs.log_reader import LogFindings
from alnair.profiler.memory_course import Filling
from alnair.profiler.pod_findings import PodFindings
from alnair.profiler.workload import workload

GOLDEN = (Path(__file__).parents[2] / "golden" / "workload.json").read_text().rstrip("\n")
NOTHING = PodFindings()
NOON = "2026-11-21T12:00:00Z"
LOG = LogFindings(
    framework="lightning",
    step=1170,
    epoch=2.0,
    progress=0.25,
    eta_s=1474.0,
    eta_low_s=1380.0,
    eta_high_s=1570.0,
    rate=1 / 0.42,
    readings=40,
)


def test_the_golden_file_is_what_the_type_writes() -> None:
    assert msgspec.json.encode(msgspec.json.decode(GOLDEN, type=Workload)).decode() == GOLDEN


def test_findings_become_the_annotation() -> None:
    found = workload(
        NOON,
        PodFindings(phase="training", bottleneck="input-bound", busy=0.5),
        log=LOG,
        idle_since="2026-11-21T11:40:00Z",
        filling=Filling(1140.0, 0.8),
        neighbours=frozenset({"team-b/infer-0"}),
        slowdown=1.3,
        type_by_calls="inference",  # what its log says goes first
        model=ModelFacts(
            Name("org/tiny-124m", "option --model"),
            Figure(124e6, "log"),
            Figure(237.0, "estimated: at least, 2 bytes for each parameter"),
        ),
        input=InputFacts(
            (InputPlace("persistentVolumeClaim", "images", "volume data at /data"),),
            epoch_mib=Figure(1200.0, "bytes read from disks"),
        ),
        cuda=CudaCalls(1230.0, {"h2d": 0.1, "launch": 0.9}, "the slice's library"),
    )
    golden = msgspec.json.decode(GOLDEN, type=Workload)
    assert found is not None
    assert found == msgspec.structs.replace(golden, eta_s=1470.0)  # three digits


def test_without_a_log_the_driver_s_samples_tell_the_iteration() -> None:
    found = workload(NOON, PodFindings(period_s=1.7, busy=0.6))
    assert found is not None
    assert (found.period_s, found.period_from, found.busy_s) == (1.7, "gpu", 1.02)


def test_what_is_not_known_is_absent_and_nothing_known_is_no_annotation() -> None:
    found = workload(NOON, NOTHING, log=LogFindings(framework="keras", rate=4.0, readings=3))
    assert found is not None
    document = msgspec.json.decode(msgspec.json.encode(found))
    assert document == {
        "v": 1,
        "t": NOON,
        "type": "training",
        "framework": "keras",
        "period_s": 0.25,
        "period_from": "log",
    }
    assert workload(NOON, NOTHING) is None
    assert workload(NOON, NOTHING, log=LogFindings(lines=900)) is None


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_figure_that_is_no_number_is_not_written(value: float) -> None:
    assert workload(NOON, PodFindings(period_s=value)) is None


def test_busy_is_no_training_while_nothing_says_so() -> None:
    assert workload("now", PodFindings(phase="training")) is None
    found = workload("now", PodFindings(phase="training"), log=LogFindings(readings=1))
    assert found is not None
    assert found.phase == "training"
    idle = workload("now", PodFindings(phase="idle"))
    assert idle is not None
    assert idle.phase == "idle"


def test_calls_tell_the_type_where_nothing_else_does() -> None:
    calls = CudaCalls(10.0, {"launch": 1.0}, "the slice's library")
    found = workload(NOON, PodFindings(), type_by_calls="inference", cuda=calls)
    assert found is not None
    assert (found.type, found.type_source) == ("inference", "CUDA calls")
    found = workload(NOON, PodFindings(kind="idle"), type_by_calls="inference", cuda=calls)
    assert found is not None
    assert (found.type, found.type_source) == ("idle", None)


def test_that_nobody_counts_calls_is_told_only_beside_what_is_known() -> None:
    nobody = CudaCalls(unknown="nobody counts")
    assert workload(NOON, PodFindings(), cuda=nobody) is None
    found = workload(NOON, PodFindings(kind="idle"), cuda=nobody)
    assert found is not None
    assert found.cuda == nobody
