"""What scores count: some decide only where others are alike, and some have no say."""

import itertools
import random
from collections.abc import Sequence
from typing import Any

from alnair.scheduler.framework.score_weights import PARTS, weigh
from alnair.scheduler.state.nodes.columns import TIES


class Plugin:
    def __init__(self, name: str, **attributes: Any) -> None:
        self.name = name
        self.__dict__.update(attributes)


def ranks(
    plugins: Sequence[Plugin], rows: Sequence[Sequence[float]], **weights: int
) -> list[float]:
    """The rank of each row of scores without its tie-break."""
    shares, unit = weigh(plugins, weights)
    return [sum(s * w for s, w in zip(row, shares, strict=True)) * unit for row in rows]


def test_whole_points_count_as_they_always_did() -> None:
    assert weigh([Plugin("A"), Plugin("B")], {"B": 3}) == ((1.0, 3.0), float(TIES))


def test_a_part_of_a_point_is_worth_more_than_the_order_of_ties() -> None:
    low, high = ranks([Plugin("A"), Plugin("F", fine=True)], [(5, 0), (5, 1 / PARTS)])
    assert high - low == TIES


def test_tie_breakers_never_outweigh_the_least_difference() -> None:
    """On random scores the order is that of pairs: all others, then the tie-breakers."""
    draw = random.Random(1)
    plugins = [
        Plugin("A"),
        Plugin("F", fine=True, most=64, tie_breakers=("T", "U", "absent")),
        Plugin("T"),
        Plugin("U", fine=True, most=64),
    ]
    rows = [
        (
            draw.randrange(3),
            draw.randrange(3 * PARTS) / PARTS,
            draw.choice((0, 1, 99, 100)),
            draw.choice((0, 1, 64 * PARTS)) / PARTS,
        )
        for _ in range(200)
    ]
    found = ranks(plugins, rows, A=2, T=3)
    want = [(2 * a + f, 3 * t + u) for a, f, t, u in rows]
    for i, j in itertools.combinations(range(len(rows)), 2):
        assert (found[i] > found[j]) == (want[i] > want[j])
        assert found[i] == found[j] or abs(found[i] - found[j]) >= TIES


def test_a_plugin_that_another_stands_for_has_no_say() -> None:
    plugins = [Plugin("A"), Plugin("O"), Plugin("F", fine=True)]
    assert weigh(plugins, {"O": 2}, {"F"}) == ((1.0, 2.0, 0.0), float(TIES))
