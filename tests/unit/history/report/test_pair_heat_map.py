"""A table of pairs as a picture."""

import pytest

from alnair.history.report.pair_heat_map import heat_map
from alnair.model.pair_rates import PairRates

TABLE = PairRates(("train $x$", "a name that is longer than there is room"), ((0.5, 0), (0.91, 1)))


@pytest.mark.parametrize(("kind", "begins"), [("svg", b"<?xml"), ("png", b"\x89PNG")])
def test_the_same_figures_give_the_same_bytes(kind: str, begins: bytes) -> None:
    found = heat_map(TABLE, "A100", kind)
    assert found.startswith(begins)
    assert heat_map(TABLE, "A100", kind) == found


def test_speeds_and_names_can_be_read_and_what_was_not_measured_is_a_dash() -> None:
    text = heat_map(TABLE, "A100/mps", "svg").decode()
    for written in ("0.50", "0.91", "1.00", ">-<", "train $x$", "A100/mps", "beside"):
        assert written in text


def test_a_table_of_one_kind_is_drawn() -> None:
    assert heat_map(PairRates(("a",), ((0.5,),)), "K80", "png")
