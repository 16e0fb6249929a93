"""Counts of CUDA calls: how they are distributed, and what they tell of the kind of work."""

import csv
from collections import Counter
from pathlib import Path

import pytest

from alnair.profiler.job_facts.cuda_calls import distribution, growth, kind_by_calls

SEQUENCES = Path(__file__).resolve().parents[3] / "native" / "sequences"


def test_shares_are_of_what_was_called_between_the_looks() -> None:
    before = {"launch": 1000, "h2d": 10, "sync": 5}
    now = {"launch": 1900, "h2d": 110, "sync": 5, "graph": 0}
    found = distribution(before, now, 10.0, "the slice's library")
    assert found is not None
    assert found.per_s == 100.0
    assert found.shares == {"h2d": 0.1, "launch": 0.9}
    assert found.source == "the slice's library"


def test_a_count_that_fell_has_grown_by_nothing() -> None:
    assert growth({"launch": 1000, "h2d": 1}, {"launch": 3, "h2d": 5}) == {"launch": 0, "h2d": 4}


@pytest.mark.parametrize(
    ("before", "now", "seconds"),
    [({"launch": 5}, {"launch": 5}, 10.0), ({"launch": 5}, {"launch": 9}, 0.0), ({}, {}, 1.0)],
)
def test_nothing_is_told_of_nothing(
    before: dict[str, int], now: dict[str, int], seconds: float
) -> None:
    assert distribution(before, now, seconds, "") is None


@pytest.mark.parametrize(
    ("calls", "kind"),
    [
        # A convolutional net: images and labels go in, the loss is read every 50 steps.
        ({"h2d": 200, "d2h": 2, "launch": 90_000}, "training"),
        # The same as a graph for each step.
        ({"h2d": 200, "d2h": 2, "graph": 100, "launch": 300}, "training"),
        # A request in, an answer back, one pass forward.
        ({"h2d": 500, "d2h": 500, "launch": 40_000}, "inference"),
        # Tokens one by one, a graph for each.
        ({"h2d": 900, "d2h": 900, "graph": 900, "launch": 1800}, "inference"),
        # A training that reads its loss at each step looks like slow requests.
        ({"h2d": 100, "d2h": 100, "launch": 90_000}, None),
        ({"h2d": 100, "d2h": 0, "launch": 300}, None),
        ({"h2d": 3, "d2h": 0, "launch": 9000}, None),
        ({"launch": 9000}, None),
        ({}, None),
    ],
)
def test_copies_to_and_from_the_gpu_tell_trainings_from_requests(
    calls: dict[str, int], kind: str | None
) -> None:
    assert kind_by_calls(calls) == kind


def recorded(name: str) -> Counter[str]:
    """Calls of a framework's training as they were recorded, by class."""
    classes = {"cuMemcpyHtoD": "h2d", "cuMemcpyDtoH": "d2h", "cuLaunchKernel": "launch"}
    found: Counter[str] = Counter()
    with (SEQUENCES / f"{name}.tsv").open(newline="") as file:
        for row in csv.reader(file, delimiter="\t"):
            for text in row:
                for prefix, kind in classes.items():
                    found[kind] += text.startswith(prefix)
    return found


@pytest.mark.parametrize("name", ["pytorch-default", "tensorflow-bfc"])
def test_recorded_trainings_are_not_taken_for_requests(name: str) -> None:
    assert kind_by_calls(recorded(name)) != "inference"
