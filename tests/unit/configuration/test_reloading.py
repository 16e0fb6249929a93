"""What a running scheduler takes over of a changed configuration."""

import re
from pathlib import Path

import msgspec

from alnair.configuration.reloading import RELOADED, taken_over
from alnair.configuration.scheduler_file import (
    Backfilling,
    Configuration,
    LeaderElection,
    Logging,
    ProfileConfiguration,
    Serving,
)

RUNNING = Configuration()


def test_profiles_backfill_logging_and_seed_are_taken_over() -> None:
    wanted = Configuration(
        profiles=(ProfileConfiguration("team-a"),),
        backfill=Backfilling(patience="1m"),
        logging=Logging(level="debug"),
        seed=7,
    )
    assert taken_over(RUNNING, wanted) == (wanted, [])


def test_all_else_keeps_its_value_and_is_named_in_the_files_spelling() -> None:
    wanted = Configuration(
        serving=Serving(port=8080),
        leader_election=LeaderElection(lease_duration="30s"),
        dry_run=True,
        seed=7,
    )
    found, left = taken_over(RUNNING, wanted)
    assert found == msgspec.structs.replace(RUNNING, seed=7)
    assert left == ["leaderElection.leaseDuration", "serving.port", "dryRun"]


def test_what_was_put_back_needs_no_restart() -> None:
    assert taken_over(RUNNING, Configuration()) == (RUNNING, [])


def test_the_chart_restarts_the_scheduler_for_all_other_fields() -> None:
    chart = Path(__file__).parents[3] / "charts" / "alnair"
    text = (chart / "templates" / "scheduler" / "deployment.yaml").read_text()
    line = next(
        line for line in text.splitlines() if "omit .Values.scheduler.configuration" in line
    )
    assert tuple(re.findall(r'"(\w+)"', line)) == RELOADED
