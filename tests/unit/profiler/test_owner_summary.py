"""What an owner's pods used fits into its annotation, whatever there is of it."""

import json

from alnair.profiler.owner_summary import MOST_BYTES, PodOfOwner, summary
from kit.job_history import life


def test_the_largest_of_each_metric_counts_all_pods_and_the_lines_fit_in_two_kib() -> None:
    pods = [PodOfOwner(f"pod-{n}", "completed", 100.0, life(util=n / 10)) for n in range(500)]
    text = summary(pods, 500, "2026-01-01T00:00:00Z")
    document = json.loads(text)
    assert len(text) <= MOST_BYTES
    assert document["max"] == {"gpu_memory_mib": 2048.0, "gpu_util": 99.8}
    assert document["pods"] == 500
    assert 5 < len(document["of"]) < 500
    assert document["of"][1] == {
        "pod": "pod-1",
        "outcome": "completed",
        "seconds": 100.0,
        "gpu_util": {"mean": 0.1, "max": 0.2},
        "gpu_memory_mib": {"mean": 1000.0, "max": 2048.0},
    }


def test_a_pod_that_lasts_has_no_outcome_and_no_end() -> None:
    document = json.loads(summary([PodOfOwner("p", "", None, life())], 1, "t"))
    assert set(document["of"][0]) == {"pod", "gpu_util", "gpu_memory_mib"}
