"""The best-connected GPUs: a search over subsets, compared with trying them all."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alnair.model.nodes import Gpu
from alnair.scheduler.state.gpus.gpu_links import Cliques, Wiring, quality, strength, wiring
from kit import make

KINDS = ("SYS", "NODE", "PHB", "PXB", "PIX", "NV1", "NV4", "NV12", "NV18")


def mask(*slots: int) -> int:
    return sum(1 << slot for slot in slots)


@st.composite
def wirings(draw: st.DrawFn) -> Wiring:
    size = draw(st.integers(1, 6))
    links = [[0] * size for _ in range(size)]
    for a, b in itertools.combinations(range(size), 2):
        links[a][b] = links[b][a] = strength(draw(st.sampled_from(KINDS)))
    zones = draw(st.lists(st.sampled_from((None, 0, 1)), min_size=size, max_size=size))
    return Wiring(tuple(map(tuple, links)), tuple(zones))


def tried(wired: Wiring, free: int, count: int, inside: int) -> int | None:
    """The best set by trying all of them."""

    def links(slots: tuple[int, ...]) -> list[int]:
        return [wired.strengths[a][b] for a, b in itertools.combinations(slots, 2)]

    def key(slots: tuple[int, ...]) -> tuple[int, int, bool, int, int, int]:
        rest = tuple(s for s in here if s not in slots)
        zones = [wired.zones[s] for s in slots]
        near = sum(a is not None and a == b for a, b in itertools.combinations(zones, 2))
        own = links(slots)
        within = all(inside >> s & 1 for s in slots)
        return (-min(own, default=0), -sum(own), not within, -near, -sum(links(rest)), mask(*slots))

    here = tuple(s for s in range(len(wired.zones)) if free >> s & 1)
    best = min(itertools.combinations(here, count), key=key, default=None)
    return None if best is None else mask(*best)


@given(wired=wirings(), free=st.integers(0, 63), count=st.integers(1, 4), inside=st.integers(0, 63))
def test_the_search_finds_what_trying_all_sets_finds(
    wired: Wiring, free: int, count: int, inside: int
) -> None:
    free &= (1 << len(wired.zones)) - 1
    found = Cliques(wired)
    want = tried(wired, free, count, inside)
    assert found.best(free, count, inside) == found.best(free, count, inside) == want


def pairs(count: int) -> Cliques:
    """GPUs of which 0 and 1, 2 and 3, … have NVLinks."""
    wired = wiring(make.linked("n", count, 2))
    assert wired is not None
    return Cliques(wired)


@pytest.mark.parametrize(
    ("free", "count", "want"),
    [
        (mask(*range(8)), 2, mask(0, 1)),
        (mask(0, 2, 3, 5), 2, mask(2, 3)),
        (mask(0, 2, 3, 5), 1, mask(0)),
        (mask(2, 3, 5), 1, mask(5)),
        (mask(0, 1, 2, 4, 5), 3, mask(0, 1, 2)),
        (mask(0, 1, 2), 4, None),
    ],
)
def test_pairs_are_taken_and_left_whole(free: int, count: int, want: int | None) -> None:
    assert pairs(8).best(free, count) == want


def test_among_equals_gpus_near_the_cores_go_first() -> None:
    wired = Wiring(((0, 9, 9, 9), (9, 0, 9, 9), (9, 9, 0, 9), (9, 9, 9, 0)), (0, 0, 1, 1))
    found = Cliques(wired)
    assert found.best(15, 2) == mask(0, 1)
    assert found.best(15, 2, mask(2, 3)) == mask(2, 3)
    assert found.best(mask(0, 2, 3), 2) == mask(2, 3), "in one zone"


def test_stronger_links_score_higher() -> None:
    scores = [quality(strength(kind)) for kind in KINDS]
    assert scores == sorted(scores)
    assert (scores[0], scores[-1]) == (10, 100)
    assert quality(strength("NVSwitch")) == 100
    assert strength("smoke signals") == strength("NV") == 0


def test_what_nodes_say_of_links_is_read_from_both_sides() -> None:
    a = Gpu("a", 0, "A100", 1, 0, ((3, "NV4"),))
    b = Gpu("b", 3, "A100", 1, 1)
    found = wiring([a, b])
    assert found is not None
    assert found.strengths == ((0, 400), (400, 0))
    doubtful = wiring([a, Gpu("b", 3, "A100", 1, 1, ((0, "SYS"),))])
    assert doubtful is not None
    assert doubtful.strengths == ((0, 10), (10, 0))


def test_without_links_zones_tell_and_without_either_nothing_does() -> None:
    one, two = Gpu("a", 0, "A100", 1, 0), Gpu("b", 1, "A100", 1, 1)
    found = wiring([one, two, Gpu("c", 2, "A100", 1, 1)])
    assert found is not None
    assert found.strengths == ((0, 10, 10), (10, 0, 20), (10, 20, 0))
    assert wiring([make.gpu("n", 0), make.gpu("n", 1)]) is None
    assert wiring([]) is None
    assert wiring([make.gpu("n", i, numa=0) for i in range(17)]) is None


def test_sixteen_gpus_are_searched_too() -> None:
    wired = wiring(make.linked("n", 16, 4))
    assert wired is not None
    found = Cliques(wired)
    assert found.best(0xFFFF, 4) == mask(0, 1, 2, 3)
    assert found.best(0xFFF0 | mask(0), 4) == mask(4, 5, 6, 7)
    assert found.best(0b0111_0111_0111_0111, 3) == mask(0, 1, 2)
    assert found.quality(0xFFFF, 5) == quality(strength("SYS"))
