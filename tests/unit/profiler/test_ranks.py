"""Ranks of pods, from what their makers wrote on them."""

import pytest

from alnair.profiler.ranks import rank_of, role_of


@pytest.mark.parametrize(
    ("found", "rank"),
    [
        ({"name": "train-x", "labels": {"batch.kubernetes.io/job-completion-index": "3"}}, 3),
        ({"name": "a-7", "labels": {"apps.kubernetes.io/pod-index": "2"}}, 2),
        ({"name": "m", "labels": {"training.kubeflow.org/replica-index": "0"}}, 0),
        ({"name": "v", "labels": {}, "annotations": {"volcano.sh/task-index": "5"}}, 5),
        ({"name": "e", "labels": {}, "variables": {"RANK": "4"}}, 4),
        ({"name": "web-11", "labels": {}}, 11),
        ({"name": "train-x2f5p", "labels": {}}, None),
        ({"name": "e", "labels": {}, "variables": {"RANK": "$(INDEX)"}}, None),
        ({"name": "e", "labels": {"apps.kubernetes.io/pod-index": "99999999999999"}}, None),
    ],
)
def test_the_surest_word_counts(found: dict, rank: int | None) -> None:  # type: ignore[type-arg]
    assert rank_of(**found) == rank


def test_roles_tell_masters_from_workers() -> None:
    assert role_of({"training.kubeflow.org/replica-type": "worker"}) == "worker"
    assert role_of({}) == ""
