"""The options of `alnair controller` that bound rebalancing."""

import pytest
from typer.testing import CliRunner

from alnair.cli import main
from alnair.cli.controller_rebalancing import RebalancingOptions
from alnair.model.rebalancing import RebalanceBounds


def test_nobody_is_moved_unless_that_is_asked_for() -> None:
    assert RebalancingOptions().bounds() is None
    assert RebalancingOptions(moves=3, cool_down="2h").bounds() is None


def test_the_defaults_are_those_of_the_bounds() -> None:
    assert RebalancingOptions(every="10m").bounds() == RebalanceBounds(every=600)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--rebalance-every", "often"], "'often' is no span of time"),
        (["--rebalance-every", "0.5s"], "it must be a second or more"),
        (["--rebalance-every", "2h"], "it must not be shorter than --rebalance-every"),
        (["--rebalance-every", "10m", "--rebalance-timeout", "0s"], "a second or more"),
        (["--rebalance-moves", "0"], "--rebalance-moves"),
    ],
)
def test_bounds_that_cannot_be_meant_are_refused_with_the_option(
    options: list[str], said: str
) -> None:
    done = CliRunner().invoke(main.build(["controller"]), ["controller", *options])
    assert done.exit_code == 2
    assert said in " ".join(done.output.replace("│", " ").split())
