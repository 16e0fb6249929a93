"""Numbers of things in sentences."""

import pytest

from alnair.model.plurals import counted


@pytest.mark.parametrize(
    ("number", "thing", "text"),
    [
        (0, "pod", "0 pods"),
        (1, "pod", "1 pod"),
        (2, "node", "2 nodes"),
        (2, "policy", "2 policies"),
        (2, "day", "2 days"),
        (3, "switch", "3 switches"),
    ],
)
def test_one_thing_is_singular_and_any_other_number_is_not(
    number: int, thing: str, text: str
) -> None:
    assert counted(number, thing) == text


def test_a_plural_of_its_own_is_taken() -> None:
    assert counted(2, "series", "series") == "2 series"
