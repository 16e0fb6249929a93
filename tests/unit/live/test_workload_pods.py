"""Why an object that makes pods has none."""

import pytest

from alnair.live.workload_pods import has_ended


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
