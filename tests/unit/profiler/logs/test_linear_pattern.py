"""Users' patterns by RE2 beside Python's own, on patterns and lines made at random."""

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alnair.profiler.logs.linear_pattern import LinearPattern, PatternError

ATOMS = ["a", "b", ".", "[ab]", r"\d", "[^a]", "1", r"\w", r"\x61", "[]a]", r"\."]
REPEATS = ["", "", "", "*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{1,}?"]


class Maker:
    """Makes patterns; no part that may match nothing is repeated: there `re` has its own way."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.groups = 0

    def alternatives(self, depth: int) -> str:
        return "|".join(self.sequence(depth) for _ in range(self.chance.choice([1, 1, 2])))

    def sequence(self, depth: int) -> str:
        text = "".join(self.repeated(depth) for _ in range(self.chance.randint(1, 3)))
        before = self.chance.choice([r"\b", "^"]) if self.chance.random() < 0.1 else ""
        return before + text + ("$" if self.chance.random() < 0.1 else "")

    def repeated(self, depth: int) -> str:
        text = self.atom(depth)
        is_empty = re.match(text, "") is not None
        anchored = "^" in text or "$" in text or r"\b" in text
        return text + ("" if is_empty or anchored else self.chance.choice(REPEATS))

    def atom(self, depth: int) -> str:
        if depth <= 0 or self.chance.random() < 0.5:
            return self.chance.choice(ATOMS)
        inner = self.alternatives(depth - 1)
        if self.chance.random() < 0.4:
            return f"(?:{inner})"
        self.groups += 1
        return f"(?P<g{self.groups}>{inner})"


@settings(max_examples=150)
@given(st.integers(0, 10**9), st.lists(st.text("ab1. ", max_size=9), min_size=1, max_size=4))
def test_it_finds_what_python_finds(seed: int, lines: list[str]) -> None:
    text = Maker(seed).alternatives(2)
    pattern = LinearPattern(text)
    for line in lines:
        found = re.search(text, line)
        theirs = found and {k: v for k, v in found.groupdict().items() if v is not None}
        assert pattern.search(line) == theirs, text


@pytest.mark.parametrize(
    "text", [r"(?P<step>(a+)+)b", r"(?P<step>(a|a)*)b", r"(?P<step>.*.*.*.*)b"]
)
def test_what_takes_python_exponential_time_takes_time_like_the_line(text: str) -> None:
    pattern = LinearPattern(text)
    assert pattern.search("a" * 20_000) is None
    assert pattern.search("a" * 300 + "b") == {"step": "a" * 300}


def test_letters_of_either_case_if_the_pattern_says_so() -> None:
    assert LinearPattern(r"(?i)STEP (?P<step>\d+)").search("Step 4") == {"step": "4"}


def test_other_letters_than_of_ascii_are_found_and_given_back_whole() -> None:
    found = LinearPattern(r"é(?P<step>\d+)…(?P<loss>\S+)").search("après é12…0,5µ x")
    assert found == {"step": "12", "loss": "0,5µ"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (r"a(?=x)", r"'\(\?=' at character 2 needs time without bound"),
        (r"(a)\1", r"at character 4 needs time without bound"),
        (r"a++", r"'\+\+' at character 2"),
        ("a(", "at position 1"),
        ("(?P<a>x)(?P<a>y)", "at position 12"),
        ("x" * 5 + "{2000}", "too long, or repeats too much"),
        ("((((x{100}){100}){100}){100})", "too long, or repeats too much"),
        ("\ud800", "it is no text"),
    ],
)
def test_what_it_cannot_do_is_said_with_its_place(text: str, said: str) -> None:
    with pytest.raises(PatternError, match=said):
        LinearPattern(text)
