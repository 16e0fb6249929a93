"""Our automaton beside Python's own expressions, on patterns and lines made at random."""

import random
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alnair.profiler.logs.linear.machine import Machine
from alnair.profiler.logs.linear.syntax import compile_pattern

ATOMS = ["a", "b", ".", "[ab]", r"\d", "[^a]", "1", r"\w", r"\x61", "[]a]", r"\."]
REPEATS = ["", "", "", "*", "+", "?", "*?", "+?", "??", "{2}", "{1,2}", "{1,}?", "{,2}"]


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
    pattern = Maker(seed).alternatives(2)
    machine = Machine(compile_pattern(pattern))
    for line in lines:
        found = re.search(pattern, line)
        theirs = found and {k: v for k, v in found.groupdict().items() if v is not None}
        assert machine.search(line) == theirs, pattern


@pytest.mark.parametrize(
    "pattern", [r"(?P<step>(a+)+)b", r"(?P<step>(a|a)*)b", r"(?P<step>.*.*.*.*)b"]
)
def test_what_takes_python_exponential_time_takes_time_like_the_line(pattern: str) -> None:
    machine = Machine(compile_pattern(pattern))
    assert machine.search("a" * 2000) is None
    assert machine.search("a" * 300 + "b") == {"step": "a" * 300}


def test_what_is_remembered_is_bounded() -> None:
    machine = Machine(compile_pattern(r"(?P<step>\d+)x"))
    for character in range(33, 6000):
        machine.search(f"{chr(character)} 12x")
    assert len(machine._steps) <= 2000


def test_letters_of_either_case_if_the_pattern_says_so() -> None:
    assert Machine(compile_pattern(r"(?i)STEP (?P<step>\d+)")).search("Step 4") == {"step": "4"}
