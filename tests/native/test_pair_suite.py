"""The suite's workloads on the fake GPU, alone, together, and in each mode of sharing."""

import json
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner

from alnair.cli import main
from alnair.model.pair_rates import MPS, TIME_SLICED
from alnair.node.pairing import measuring, suite
from alnair.node.pairing.measuring import Times, rates
from alnair.node.pairing.modes import sharing
from alnair.node.pairing.workload import Command
from alnair.profiler.pair_speeds import summarise
from alnair.traces.pair_tables import load
from native.fake import Fake
from native.server_kit import Group

SHORT = Times(warm_up=0.2, measured=0.6, patience=120)


@pytest.fixture(autouse=True)
def _who_stands_still_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(measuring, "LONGER", 100)


def command(fake: Fake, kind: str, mode: str = TIME_SLICED) -> Command:
    plain = suite.command(kind)
    return sharing(msgspec.structs.replace(plain, environment=fake.environment(kind)), mode)


def test_all_six_run_beside_one_another_and_use_the_gpu() -> None:
    with Fake("rtx-2080") as fake:
        found = rates([command(fake, kind) for kind in suite.KINDS], SHORT)
        assert all(rate > 0 for rate in found)
        assert all(fake.work_ns(kind) > 0 for kind in suite.KINDS)


@pytest.mark.timing
def test_who_fills_the_gpu_has_half_of_it_beside_its_like_and_more_beside_who_idles() -> None:
    with Fake("titan-x") as fake:
        kinds = "compute-bound", "inference"
        commands = {kind: command(fake, kind) for kind in kinds}
        told: list[int] = []
        rounds = suite.rounds_of_all(commands, SHORT, 1, lambda _, done, __: told.append(done))
        assert told == [0, 1, 2, 3, 4, 5]
        found = {pair: summarise(each) for pair, each in rounds.items()}
        alike = found["compute-bound", "compute-bound"]
        assert alike.combined == pytest.approx(1.0, abs=0.3)
        assert found["compute-bound", "inference"].first.speed > alike.first.speed


def test_the_same_work_takes_longer_on_a_smaller_gpu() -> None:
    found = []
    for profile in ("titan-x", "k80"):
        with Fake(profile) as fake:
            found += rates([command(fake, "compute-bound")], SHORT)
    assert 1.8 < found[0] / found[1] < 3.5, "as their multiprocessors, lanes and clocks"


def test_pairs_that_do_not_fit_are_measured_as_such() -> None:
    with Fake("rtx-2080") as fake:
        hungry = command(fake, "memory-bound")
        # It takes 5 of 8 GiB.
        full = msgspec.structs.replace(
            hungry, words=(*hungry.words[:2], "-c", _HUNGRY), pattern="step"
        )
        rounds = suite.rounds_of_all({"full": full}, SHORT, 2, lambda *_: None)
        assert rounds == {("full", "full"): []}


def test_through_mps_small_kernels_run_beside_one_another() -> None:
    with Fake("rtx-2080", mode="mps") as fake:
        commands = {"small-kernels": command(fake, "small-kernels", MPS)}
        rounds = suite.rounds_of_all(commands, SHORT, 1, lambda *_: None)
        (found,) = (summarise(each) for each in rounds.values())
        assert found.combined > 1.0


def test_limited_slices_leave_one_another_alone(tmp_path: Path) -> None:
    Group().close()  # skips where no control groups can be made
    words = ["profile", "pair", "--suite", "--kinds", "compute-bound", "--fake-gpu", "rtx-2080"]
    words += ["--mode", "limited", "--limits", "30,30", "--rounds", "1", "--warm-up", "0.3"]
    words += ["--seconds", "1", "--out", str(tmp_path / "pairs.json"), "--json"]
    done = CliRunner().invoke(main.build(["profile"]), words)
    assert done.exit_code == 0, done.output
    (found,) = json.loads(done.stdout.splitlines()[-1])
    assert found["table"] == "NVIDIA-GeForce-RTX-2080/limited"
    assert found["rates"]["rates"][0][0] > 0.7, "that take turns would have half"
    assert found["table"] in load(tmp_path / "pairs.json")


_HUNGRY = """
import ctypes, time
cuda, context, memory = ctypes.CDLL("libcuda.so.1"), ctypes.c_void_p(), ctypes.c_uint64()
assert not cuda.cuInit(0) and not cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
assert not cuda.cuCtxSetCurrent(context)
assert not cuda.cuMemAlloc_v2(ctypes.byref(memory), ctypes.c_size_t(5 << 30))
while True:
    print("step", flush=True)
    time.sleep(0.02)
"""
