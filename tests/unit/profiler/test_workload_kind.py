"""Trainings, requests, batch jobs and idle GPUs are told apart; what is unclear stays unknown."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from alnair.profiler.even_grid import Refusal
from alnair.profiler.workload_kind import WorkloadKind, workload_kind

TIMES = np.arange(600.0)
FILE = Path(__file__).resolve().parents[3] / "benchmarks" / "lib" / "load_shapes.py"


@pytest.fixture(scope="module")
def shapes() -> ModuleType:
    spec = importlib.util.spec_from_file_location("load_shapes", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["load_shapes"] = module  # dataclasses look there
    spec.loader.exec_module(module)
    return module


def test_made_up_trainings_are_told_from_other_work(shapes: ModuleType) -> None:
    called: dict[bool, list[bool]] = {True: [], False: []}
    for is_training, making, kinds in (
        (True, shapes.cyclic, shapes.CYCLIC),
        (False, shapes.other, shapes.OTHERS),
    ):
        for number, kind in enumerate(kinds):
            for one in range(5):
                made = making(kind, 600, np.random.default_rng((6, number, one)))
                found = workload_kind(made.times, made.values)
                assert isinstance(found, WorkloadKind)
                called[is_training].append(found.kind == "training")
    assert np.mean(called[True]) >= 0.95
    assert np.mean(called[False]) <= 0.05


def told(values: np.ndarray) -> WorkloadKind:
    found = workload_kind(TIMES, np.clip(values, 0, 100))
    assert isinstance(found, WorkloadKind)
    return found


def bursts(chance: np.random.Generator) -> np.ndarray:
    values = np.zeros(600)
    for start in chance.integers(0, 590, 40):
        values[start : start + 3] = 70
    return values


@pytest.mark.parametrize("seed", range(5))
def test_iterations_make_a_training(seed: int) -> None:
    noise = np.random.default_rng(seed).normal(0, 5, 600)
    found = told(np.where(TIMES % 14 < 10, 90, 10) + noise)
    assert found.kind == "training"
    assert found.period_s == pytest.approx(14, rel=0.01)
    assert found.confidence > 0.9


@pytest.mark.parametrize("seed", range(5))
def test_bursts_at_random_are_inference(seed: int) -> None:
    found = told(bursts(np.random.default_rng(seed)))
    assert found.kind == "inference"
    assert found.period_s is None
    assert "at rest for" in found.reason


@pytest.mark.parametrize("seed", range(5))
def test_a_few_long_stages_are_a_batch_job(seed: int) -> None:
    noise = np.random.default_rng(seed).normal(0, 3, 600)
    stages = np.concatenate([np.full(150, 20.0), np.full(200, 75.0), np.full(250, 45.0)])
    assert told(stages + noise).kind == "batch"


def test_a_gpu_at_rest_is_idle() -> None:
    values = np.zeros(600)
    values[100:105] = 20
    assert told(values).kind == "idle"


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        (np.full(600, 97.0), "it is steady at 97 %"),
        (np.where(TIMES % 30 < 2, 60.0, 0.0), "as a probe or a timer does"),
        (50 + np.random.default_rng(1).normal(0, 20, 600), "it neither repeats nor"),
    ],
)
def test_what_is_unclear_is_unknown_and_says_why(values: np.ndarray, reason: str) -> None:
    found = told(values)
    assert (found.kind, found.confidence, found.period_s) == ("unknown", 0.0, None)
    assert reason in found.reason


def test_too_few_samples_are_refused() -> None:
    assert isinstance(workload_kind(TIMES[:5], TIMES[:5]), Refusal)
