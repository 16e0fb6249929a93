"""The benchmarks of limits measure another library beside ours: one command, one line of JSON."""

import json
import subprocess
import sys
from typing import Any

import pytest

from native import build
from native.shares import TINY, Shares, Tenant

BENCHMARKS = build.ROOT / "benchmarks"


def run(name: str, *arguments: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, str(BENCHMARKS / f"{name}.py"), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )


def measured(name: str, *arguments: str) -> dict[str, Any]:
    done = run(name, *arguments)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    assert found["machine"]
    assert found["method"]
    return found


@pytest.fixture(scope="module")
def other() -> list[str]:
    """A library that limits nothing, told its folder."""
    build.libraries()
    library = build.client("limits_nothing", "-shared", "-fPIC")
    return ["--preload", str(library), "--env", "LIMITS_NOTHING={folder}"]


@pytest.mark.timing
def test_shares_of_two_libraries_stand_side_by_side(other: list[str]) -> None:
    """Both under the virtual clock, which needs no settling; the other's tenants have all."""
    cases = "--only", "single", "--loads", "five_ms", "--seconds", "2", "--clock", "virtual"
    found = measured("vgpu_accuracy", *cases, "--settle", "1", *other)
    assert [case["limits"] for case in found["single"]] == [[25], [50], [75]]
    for case in found["single"]:
        assert case["got"]["ours"] == pytest.approx(case["limits"], abs=2)
        assert case["got"]["other"][0] > 95
        assert case["spread_pct"].keys() == {"ours", "other"}
    assert found["other"]["mae_pct"] > 40
    assert found["ratio_mae"] > 10


@pytest.mark.timing
def test_launches_of_two_libraries_are_measured_in_the_same_rounds(other: list[str]) -> None:
    found = measured("vgpu_launch", "--rounds", "2", "--batches", "2", *other)
    assert found["ns_per_launch"].keys() == {"plain", "no_limit", "limit_not_binding", "other"}
    assert found["added_ns"].keys() == {"no_limit", "limit_not_binding", "other"}


@pytest.mark.timing
def test_launches_of_several_threads_into_several_streams_are_measured() -> None:
    few = "--rounds", "2", "--batches", "2"
    found = measured("vgpu_launch", *few, "--threads", "1,2", "--streams", "3")
    assert ([row["threads"] for row in found["rows"]], found["streams"]) == ([1, 2], 3)
    assert all(ns > 0 for row in found["rows"] for ns in row["ns_per_launch"].values())


def test_memory_of_two_libraries_by_live_allocations_by_path_and_in_a_race(
    other: list[str],
) -> None:
    short = "--live", "0", "10", "--rounds", "1", "--seconds", "0.3"
    found = measured("vgpu_memory", *short, *other)
    assert found["ns"].keys() == {"plain", "ours", "other"}
    assert found["ns"]["ours"].keys() == found["ratio_ns"].keys() == {"0", "10"}
    assert found["race_over_mib"]["ours"] == 0
    assert set(found["over_mib"]["ours"].values()) == {0.0}
    assert min(found["over_mib"]["other"].values()) > 900  # it went on to twice the limit
    assert found["met"] is True


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (["--preload", "/there/is/none.so"], "/there/is/none.so is no file"),
        (["--env", "LIMIT"], "'LIMIT' is not NAME=VALUE"),
        (["--env", "LIMIT={percents}"], "only {percent}, {bytes} and {folder} are"),
    ],
)
def test_an_option_that_cannot_be_followed_is_told(wrong: list[str], said: str) -> None:
    for name in ("vgpu_accuracy", "vgpu_launch", "vgpu_memory"):
        done = run(name, *wrong)
        assert done.returncode == 2
        assert said in done.stderr


def test_processes_of_a_tenant_share_a_folder_that_is_fresh_in_each_case() -> None:
    library = str(build.client("limits_nothing", "-shared", "-fPIC"))
    tenants = [
        Tenant(TINY, processes=count, preload=library, environment={"LIMITS_NOTHING": "{folder}"})
        for count in (2, 1)
    ]
    seen: list[list[int]] = []
    for _ in range(2):
        with Shares(tenants, 0.2, serves=False) as case:
            case.run()
            seen.append([len(list(folder.iterdir())) for folder in case.folders])
    assert seen == [[2, 1], [2, 1]]


@pytest.mark.timing
def test_the_sweep_asks_every_kind_of_gpu() -> None:
    """In short: one case of each, for a second."""
    found = measured("vgpu_accuracy", "--sweep", "--short", "--seconds", "1")
    assert len(found["rows"]) >= 14
    for row in found["rows"].values():
        assert row["cases"]
    assert found["mae_pct"] <= 3
    assert found["worst_pct"] <= 6
