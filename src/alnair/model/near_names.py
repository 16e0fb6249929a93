"""Which known names a mistyped one may have meant."""

import heapq
from collections.abc import Iterable
from difflib import SequenceMatcher
from functools import lru_cache
from typing import Final

#: How alike two names must be (0-1) to be taken for one another.
ALIKE: Final = 0.6
#: How alike a name is to one that begins with it, as a pod's begins with its Job's.
_BEGINS: Final = 0.9
_SHORTEST_BEGINNING: Final = 3
#: Names that are compared closely at most: there are thousands of nodes.
_COMPARED: Final = 300


def near(
    word: str, known: Iterable[str], limit: int = 3, *, least: float = ALIKE
) -> tuple[str, ...]:
    """Return the known names that are near a word, the nearest first, then by name.

    Case and what stands before a slash count less than the rest: `GPU-Model` is near `gpu-model`
    and `nvidia.com/gpu-model`.

    Args:
        word: mistyped, perhaps.
        known: names that there are.
        limit: names to return at most.
        least: how alike they must be (0-1): 1 for equal ones, 0.5 if half of the letters agree.
    """
    found = _by_nearness(word, frozenset(known), least)
    return found[:limit]


@lru_cache(maxsize=16)  # who looks for pairs of changes asks the same many times
def _by_nearness(word: str, known: frozenset[str], least: float) -> tuple[str, ...]:
    wanted = word.lower()
    matchers = [SequenceMatcher(b=each) for each in dict.fromkeys((wanted, _tail(wanted)))]
    found = []
    for name in _likeliest(wanted, known):
        if name == word:
            continue
        alike = max(_alike(m, each, least) for m in matchers for each in _forms(name.lower()))
        if len(wanted) >= _SHORTEST_BEGINNING and name.startswith(f"{word}-"):
            alike = max(alike, _BEGINS)
        if alike >= least:
            found.append((-alike, name))
    return tuple(name for _, name in sorted(found))


def _likeliest(word: str, known: frozenset[str]) -> Iterable[str]:
    """Return the names to compare closely: of very many those that begin and end most alike."""
    if len(known) <= _COMPARED:
        return known
    tail = _tail(word)

    def unlike(name: str) -> tuple[float, str]:
        forms = [(word, name.lower()), (tail, _tail(name.lower()))]
        return -max(_shared_ends(*form) for form in forms), name

    return heapq.nsmallest(_COMPARED, known, key=unlike)


def _shared_ends(one: str, two: str) -> float:
    """Return which part (0-1) of two words is the same at their beginnings and at their ends."""
    begin = _shared_beginning(one, two)
    end = _shared_beginning(one[begin:][::-1], two[begin:][::-1])
    return 2 * (begin + end) / max(1, len(one) + len(two))


def _shared_beginning(one: str, two: str) -> int:
    for at, (a, b) in enumerate(zip(one, two, strict=False)):
        if a != b:
            return at
    return min(len(one), len(two))


def _tail(name: str) -> str:
    return name.rpartition("/")[2]


def _forms(name: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys((name, _tail(name))))


def _alike(matcher: SequenceMatcher[str], name: str, least: float) -> float:
    """Return how alike (0-1), and 0 for what is not alike enough."""
    matcher.set_seq1(name)
    # Upper bounds that cost less come first.
    if matcher.real_quick_ratio() < least or matcher.quick_ratio() < least:
        return 0.0
    return matcher.ratio()
