"""Files of measured pairs: the shipped format, and what is said of files that are none."""

import json
from importlib import resources
from pathlib import Path

import pytest

from alnair.model.pair_rates import PairRates
from alnair.traces.pair_tables import PairTableError, load, parse, save

SHIPPED = Path(str(resources.files("alnair"))) / "data" / "gavel" / "pairs.json"
GOOD = {"kinds": ["a", "b"], "rates": [[1, 0.5], [0.5, 1]]}


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    tables = {
        "A100": PairRates(("a", "ü"), ((1, 0.5), (0.4, 0)), (10, 4), ((0, 0.01), (0.02, 0))),
        "A100/mps": PairRates(("a",), ((0.7,),)),
    }
    save(tmp_path / "pairs.json", tables)
    assert load(tmp_path / "pairs.json") == tables
    assert load(SHIPPED)["V100"].alone is None


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"A100": {"kinds": ["a"],\n "rates": [[1]}', "line 2, column 15: this is no JSON"),
        ("[]", r"no table of pairs: Expected `object`, got `array`"),
        ('{"A100": {"kinds": ["a"]}}', "missing required field `rates` - at `\\$"),
        (json.dumps({"A100": {**GOOD, "rates": [[1, 1]]}}), "A100: rates are not 2 rows of 2"),
        (json.dumps({"A100": {**GOOD, "spread": [[1, 1]]}}), "A100: spread are not 2 rows of 2"),
        (json.dumps({"A100": {**GOOD, "alone": [1]}}), "A100: alone are not 2 numbers"),
        (json.dumps({"A100": {**GOOD, "kinds": ["a", "a"]}}), "A100: kinds: 'a' is there twice"),
        (json.dumps({"A100": {**GOOD, "rates": [[1, 1.5], [1, 1]]}}), "'a' beside 'b' is 1.5"),
        (json.dumps({"A100/mig": GOOD}), "'mig' is no mode of sharing .* known are mps and limi"),
        (json.dumps({"K80": GOOD, "Tesla-K80": GOOD}), "Tesla-K80: is the same GPU model as K80"),
        ('{"K80": {"kinds": [], "rates": []}, "K80": 1}', "Expected `object`"),
        (
            '{"K80": {"kinds": [], "rates": []}, "K80": {"kinds": [], "rates": []}}',
            "'K80' is there twice: keep one",
        ),
        ('{"K80": {"kinds": [], "rates": [], "rates": []}}', "'rates' is there twice"),
    ],
)
def test_what_is_no_table_is_refused_with_its_place(text: str, said: str) -> None:
    with pytest.raises(PairTableError, match=r"pairs\.json: .*" + said):
        parse(text.encode(), "pairs.json")


def test_all_that_is_wrong_is_said_at_once() -> None:
    text = json.dumps({"A": {**GOOD, "kinds": ["a", "a"]}, "B": {**GOOD, "alone": [1]}})
    with pytest.raises(PairTableError) as raised:
        parse(text.encode(), "x")
    assert len(str(raised.value).splitlines()) == 2


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(PairTableError, match=r"none\.json: cannot be read: No such file"):
        load(tmp_path / "none.json")
