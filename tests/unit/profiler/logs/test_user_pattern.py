"""The user's pattern: what is refused, and what a group gives."""

import pytest

from alnair.profiler.logs.linear_pattern import PatternError
from alnair.profiler.logs.user_pattern import UserPattern


@pytest.mark.parametrize(
    ("pattern", "said"),
    [
        ("(", "no regular expression"),
        ("step", "no named group"),
        (r"(?P<stap>\d+)", "'stap' means nothing here"),
        (r"(?P<step>\d+)(?=x)", "needs time without bound"),
        (r"(?P<step>\d+)(?P=step)", "needs time without bound"),
        (r"(?P<step>\d+).*\1", "needs time without bound"),
        (r"(?P<step>\d{3,400}){300}", "too long, or repeats too much"),
        (r"(?P<step>\d+)" + "x" * 600, "characters"),
    ],
)
def test_a_pattern_that_cannot_be_used_is_refused_with_a_reason(pattern: str, said: str) -> None:
    with pytest.raises(PatternError, match=said):
        UserPattern(pattern)


def test_groups_are_numbers_or_nothing() -> None:
    read = UserPattern(r"s(?P<step>\S+) l(?P<loss>\S+)").read
    found = read("s1,200 l3e-1")
    assert found is not None
    assert (found.step, found.loss) == (1200, 0.3)
    found = read("ssecret lpassword")
    assert found is not None
    assert (found.step, found.loss) == (None, None)
    assert read("nothing") is None
