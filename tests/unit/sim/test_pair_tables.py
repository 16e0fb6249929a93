"""Files of measured pairs: the shipped format, grown by a pair at a time."""

import json
from importlib import resources
from pathlib import Path

import pytest

from alnair.profiler.pair_speeds import PairSpeeds, Side
from alnair.sim.interference import MeasuredPairs, Tenant
from alnair.sim.pair_tables import PairTableError, load, save, with_pair

SHIPPED = Path(str(resources.files("alnair"))) / "data" / "gavel" / "pairs.json"


def pair(first: float, second: float) -> PairSpeeds:
    return PairSpeeds(Side(10, 10 * first, first, 0), Side(4, 4 * second, second, 0), 0, 3)


def test_what_was_measured_is_what_the_simulator_uses(tmp_path: Path) -> None:
    path = tmp_path / "pairs.json"
    save(path, {"A100": with_pair(None, ("resnet", "bert"), pair(0.7, 0.6))})
    save(path, {"A100": with_pair(load(path)["A100"], ("bert", "vgg"), pair(0.9, 0.8))})
    table = load(path)["A100"]
    assert table.alone == (10, 10, 4)
    model = MeasuredPairs({"A100": table}, "A100")
    resnet, bert, vgg = (Tenant(80, kind) for kind in table.kinds)
    assert model.rates((resnet, bert), "A100") == (0.7, 0.6)
    assert model.rates((vgg, bert), "A100") == (0.8, 0.9)
    assert model.rates((resnet, vgg), "A100") == [0.625, 0.625]  # not measured: in proportion


def test_a_kind_beside_itself_is_one_figure() -> None:
    assert with_pair(None, ("a", "a"), pair(0.5, 0.52)).rates == ((0.51,),)


def test_the_shipped_table_grows_and_keeps_what_it_has(tmp_path: Path) -> None:
    tables = load(SHIPPED)
    old = tables["V100"]
    tables["V100"] = with_pair(old, (old.kinds[0], "mine"), pair(0.9, 0.8))
    save(tmp_path / "pairs.json", tables)
    again = load(tmp_path / "pairs.json")["V100"]
    assert [row[: len(old.kinds)] for row in again.rates[:-1]] == list(old.rates)
    assert load(tmp_path / "pairs.json")["K80"] == tables["K80"]


@pytest.mark.parametrize(
    "text",
    ["{", "[]", json.dumps({"A100": {"kinds": ["a", "b"], "rates": [[1, 1]]}})],
)
def test_what_is_no_table_is_refused_and_named(tmp_path: Path, text: str) -> None:
    path = tmp_path / "pairs.json"
    path.write_text(text)
    with pytest.raises(PairTableError, match=r"pairs\.json"):
        load(path)
