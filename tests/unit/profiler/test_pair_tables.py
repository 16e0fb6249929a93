"""Tables of pairs that grow by what was measured."""

from importlib import resources
from pathlib import Path

from alnair.model.pair_rates import TIME_SLICED, Pairs
from alnair.profiler.pair_speeds import PairSpeeds, Side
from alnair.profiler.pair_tables import with_pair
from alnair.sim.interference import MeasuredPairs, Tenant
from alnair.traces.pair_tables import load, save

SHIPPED = Path(str(resources.files("alnair"))) / "data" / "gavel" / "pairs.json"


def pair(first: float, second: float, spread: float = 0.01) -> PairSpeeds:
    sides = Side(10, 10 * first, first, spread), Side(4, 4 * second, second, 2 * spread)
    return PairSpeeds(*sides, combined=0, rounds=3)


def test_what_was_measured_is_what_the_simulator_uses(tmp_path: Path) -> None:
    path = tmp_path / "pairs.json"
    save(path, {"A100": with_pair(None, ("resnet", "bert"), pair(0.7, 0.6))})
    save(path, {"A100": with_pair(load(path)["A100"], ("bert", "vgg"), pair(0.9, 0.8))})
    table = load(path)["A100"]
    assert table.alone == (10, 10, 4)
    assert table.spread == ((0, 0.01, 0), (0.02, 0, 0.01), (0, 0.02, 0))
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
    again = load(tmp_path / "pairs.json")
    assert [row[: len(old.kinds)] for row in again["V100"].rates[:-1]] == list(old.rates)
    assert again["K80"] == tables["K80"]
    found = Pairs(again).measured("Tesla-V100", TIME_SLICED, "mine", old.kinds[0])
    assert found is not None
    assert (found.own, found.other, found.table) == (0.8, 0.9, "V100")
