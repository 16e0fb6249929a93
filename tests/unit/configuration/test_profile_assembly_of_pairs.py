"""Measured pairs that a configuration names reach the plugin, and what is written of it."""

from pathlib import Path

import pytest

from alnair.configuration.profile_assembly import assemble
from alnair.configuration.scheduler_file import (
    Configuration,
    ConfigurationError,
    PluginConfig,
    ProfileConfiguration,
    dump,
    load,
)
from alnair.model import names
from alnair.model.pair_rates import PairRates
from alnair.scheduler.plugins.interference import Interference
from alnair.traces.pair_tables import save

TABLE = PairRates(("a", "b"), ((1.0, 0.5), (0.7, 1.0)))


def pairs_of(configuration: Configuration, folder: Path | None = None) -> dict[str, PairRates]:
    """The tables that the plugin of `utilsched` goes by."""
    profiles = assemble(configuration, "x", folder).profiles()
    (profile,) = (one for one in profiles if one.scheduler == names.UTILSCHED)
    (plugin,) = (one for one in profile.plugins if isinstance(one, Interference))
    return plugin._pairs.tables


def test_a_file_of_pairs_is_found_from_the_folder_of_the_configuration(tmp_path: Path) -> None:
    save(tmp_path / "pairs.json", {"A100": TABLE})
    assert pairs_of(Configuration(pairs="pairs.json"), tmp_path) == {"A100": TABLE}
    assert pairs_of(Configuration(pairs=str(tmp_path / "pairs.json"))) == {"A100": TABLE}
    assert pairs_of(Configuration()) == {}


def test_a_profile_written_out_decides_the_same_without_the_file(tmp_path: Path) -> None:
    save(tmp_path / "pairs.json", {"A100": TABLE})
    written = assemble(Configuration(pairs="pairs.json"), "x", tmp_path).explicit()
    (tmp_path / "written.yaml").write_text(dump(Configuration(profiles=written)))
    assert pairs_of(load(tmp_path / "written.yaml")) == {"A100": TABLE}


def test_pairs_of_a_profiles_own_arguments_go_before_those_of_the_file(tmp_path: Path) -> None:
    save(tmp_path / "pairs.json", {"A100": TABLE})
    own = {"H100": {"kinds": ["a"], "rates": [[0.5]]}}
    profile = ProfileConfiguration(
        names.UTILSCHED, plugin_config=(PluginConfig("Interference", {"pairs": own}),)
    )
    found = pairs_of(Configuration(pairs="pairs.json", profiles=(profile,)), tmp_path)
    assert list(found) == ["H100"]


def test_a_bad_file_is_refused_with_the_field_that_names_it(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"x: pairs: .*none\.json: cannot be read"):
        pairs_of(Configuration(pairs="none.json"), tmp_path)
