"""The ledger and the in-process tables alone: no driver, only races, kills, random operations."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOAK = int(os.environ.get("ALNAIR_SOAK", "1"))


def build(name: str, folder: Path, *flags: str) -> Path:
    """Compile a client that includes the library's modules; it needs no driver."""
    source = ROOT / "tests/native/clients" / f"{name}.c"
    program = folder / name
    base = ["gcc", "-std=gnu11", "-O2", "-g", "-Wall", "-Wextra", "-Werror", *flags]
    command = [*base, "-I", str(ROOT / "native/vgpu"), "-o", str(program), str(source), "-pthread"]
    subprocess.run(command, check=True)
    return program


@pytest.fixture(scope="module")
def race(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build("ledger_race", tmp_path_factory.mktemp("race"))


@pytest.mark.parametrize(
    ("blocks", "kills"),
    [
        pytest.param(256, 0, id="32 processes want four times the limit"),
        pytest.param(512, 0, id="32 processes want twice the limit"),
        pytest.param(512, 100, id="32 processes, 100 of them killed anywhere"),
    ],
)
def test_racing_processes_stay_within_the_limit_to_the_byte(
    race: Path, blocks: int, kills: int
) -> None:
    command = [str(race), "32", str(20_000 * SOAK), str(blocks), str(kills * SOAK), "7"]
    seen = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
    print(seen)
    assert seen["over"] == 0
    assert seen["peak"] <= seen["limit"]
    assert seen["peak"] == seen["limit"], "the race never reached the limit: it proves nothing"
    assert seen["refused"] > 1000
    assert seen["false"] < 0.001 * seen["requests"]
    assert seen["leaked"] == 0
    assert seen["done"] == 32


def test_a_forked_child_does_not_take_its_parents_turn_for_its_own(tmp_path: Path) -> None:
    program = build("forked_turn", tmp_path, "-Wno-unused-function")
    assert subprocess.run([str(program)], check=False, timeout=30).returncode == 0


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_tables_agree_with_a_plain_model(seed: int, tmp_path: Path) -> None:
    program = build("records_model", tmp_path, "-fsanitize=address,undefined")
    done = subprocess.run(
        [str(program), str(300_000 * SOAK), str(seed)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
