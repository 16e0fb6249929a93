"""Why an object that makes pods has none."""

import pytest

from alnair.live.workload_pods import has_ended, what_keeps


@pytest.mark.parametrize(
    ("conditions", "how"),
    [
        ([{"type": "Complete", "status": "True"}], "Complete"),
        (
            [{"type": "Failed", "status": "False"}, {"type": "Succeeded", "status": "True"}],
            "Succeeded",
        ),
        ([{"type": "Available", "status": "True"}], ""),
        ([], ""),
    ],
)
def test_a_job_has_ended_if_a_condition_says_so(conditions: list[dict[str, str]], how: str) -> None:
    assert has_ended({"status": {"conditions": conditions}}) == how
    assert has_ended({}) == ""


def test_a_training_job_without_room_says_so_itself() -> None:
    scheduled = {"type": "Scheduled", "status": "False", "message": "no room yet for 2 workers"}
    conditions = [{"type": "Created", "status": "True"}, scheduled]
    assert what_keeps({"status": {"conditions": conditions}}) == "no room yet for 2 workers"
    placed = scheduled | {"status": "True"}
    assert what_keeps({"status": {"conditions": [placed]}}) == ""
    assert what_keeps({}) == ""
