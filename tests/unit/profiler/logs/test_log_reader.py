"""Logs of the golden corpus, and logs made to do harm."""

import math
import tracemalloc
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from alnair.profiler.logs.log_reader import LogFindings, LogReader
from alnair.profiler.logs.reading import FRAMEWORKS
from alnair.profiler.logs.user_pattern import UserPattern

CORPUS = Path(__file__).parents[3] / "golden" / "logs"
#: What each log says, read by eye.
SAID: dict[str, dict[str, Any]] = {
    "deepspeed": {"framework": "deepspeed", "step": 110, "loss": 8.8131, "samples_per_s": 102.3},
    "estimator": {"framework": "tensorflow", "step": 200, "loss": 0.52, "rate": 83.333},
    "fastai": {"framework": "fastai", "epoch": 2, "loss": 0.312345, "accuracy": 0.901},
    "horovod-synthetic": {"framework": "horovod", "step": 3, "samples_per_s": 120.4},
    "horovod-tagged": {"framework": "horovod", "step": 3000, "steps": 15000, "loss": 1.1},
    "hugging-face": {
        "framework": "hugging-face",
        "step": 750,
        "steps": 1500,
        "epoch": 1.5,
        "epochs": 3,
        "loss": 0.3127,
        "rate": 2.0,
        "progress": 0.5,
        "eta_s": 375.0,
        "restarts": 0,
    },
    "imagenet": {
        "framework": "pytorch",
        "epoch": 1,
        "step": 501,
        "steps": 5005,
        "loss": 5.1021,
        "accuracy": 9.38,
        "rate": 2.5,
        "progress": None,
        "eta_s": None,
    },
    "json-lines": {"step": 200, "steps": 400, "loss": 0.75, "rate": 1.6667, "eta_s": 120.0},
    "keras2": {
        "framework": "keras",
        "step": 117,
        "steps": 469,
        "epoch": 2,
        "epochs": 10,
        "loss": 0.1511,
        "accuracy": 0.956,
        "progress": (469 + 117) / 4690,
    },
    "keras3": {"framework": "keras", "step": 235, "epoch": 3, "rate": 100.0, "eta_s": 11.72},
    "kubectl-timestamps": {"step": 300, "steps": 400, "loss": 0.75, "diverged": True},
    "lightning": {"framework": "lightning", "epoch": 1, "step": 117, "steps": 469, "rate": 11.7},
    "lightning-rich": {"framework": "lightning", "epoch": 1, "epochs": 10, "loss": 0.401},
    "megatron": {"framework": "megatron", "step": 100, "steps": 500000, "rate": 1.25},
    "mmdetection": {"framework": "pytorch", "step": 100, "steps": 7330, "loss": 2.11, "epoch": 1},
    "mnist": {"framework": "pytorch", "epoch": 2, "step": 30000, "loss": 0.087512},
    "nanogpt": {"framework": None, "step": 20, "loss": 8.43, "rate": 4.0},
    "not-a-training": {"framework": None, "step": None, "loss": None, "readings": 0},
    "tf-cnn-benchmarks": {"framework": "tensorflow", "step": 10, "loss": 7.972},
    "torchtitan": {"framework": None, "step": 10, "loss": 10.12, "rate": 0.9},
    "tutorial": {"step": 300, "steps": 600, "epochs": 10, "progress": 900 / 6000},
}


def read(data: bytes, piece: int = 1 << 16, **options: Any) -> LogFindings:
    reader = LogReader(**options)
    for begin in range(0, len(data), piece):
        reader.feed(data[begin : begin + piece])
    reader.close()
    return reader.findings()


def test_every_log_of_the_corpus_is_judged() -> None:
    assert {path.stem for path in CORPUS.glob("*.log")} == set(SAID)


@pytest.mark.parametrize("name", sorted(SAID))
def test_a_log_is_read_as_a_person_reads_it(name: str) -> None:
    found = msgspec.structs.asdict(read((CORPUS / f"{name}.log").read_bytes()))
    wrong = {
        key: found[key]
        for key, value in SAID[name].items()
        if found[key] != (pytest.approx(value, rel=1e-3) if isinstance(value, float) else value)
    }
    assert not wrong


@given(st.sampled_from(sorted(SAID)), st.integers(1, 40))
def test_however_a_log_is_cut_it_says_the_same(name: str, piece: int) -> None:
    data = (CORPUS / f"{name}.log").read_bytes()
    assert read(data, piece) == read(data)


@given(st.binary(max_size=400), st.sampled_from(sorted(SAID)), st.integers(0, 3000))
def test_nothing_but_numbers_and_our_own_names_is_kept(noise: bytes, name: str, place: int) -> None:
    data = (CORPUS / f"{name}.log").read_bytes()
    found = msgspec.structs.asdict(read(data[:place] + noise + data[place:]))
    assert found.pop("framework") in (None, *FRAMEWORKS)
    found |= msgspec.structs.asdict(found.pop("model"))
    assert not [v for v in found.values() if not (v is None or isinstance(v, int | float))]
    assert not [v for v in found.values() if isinstance(v, float) and not math.isfinite(v)]


def test_a_line_of_megabytes_takes_no_memory_and_hides_no_step_behind_it() -> None:
    reader = LogReader()
    chunk = b"step 1/2 loss: 0." * 4096
    tracemalloc.start()
    for _ in range(200):
        reader.feed(chunk)
    reader.feed(b"\nstep 7/10 loss=0.5\n")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2**20
    assert (reader.findings().step, reader.findings().steps) == (7, 10)


@pytest.mark.parametrize(
    "line",
    [
        "a" * 2000,
        "1," * 1000,
        "[" * 2000,
        "━" * 2000,
        "Epoch " * 333,
        "loss" * 500,
        "100%|" + "█" * 1900,
        "{" + "'learning_rate" * 140,
        "9" * 2000,
        "step: " + "1" * 400,
        "epoch=" + "0/" * 900,
        '{"time": ' * 200,
        "\x1b[" + "9;" * 900,
        "iteration " + " " * 1900,
    ],
)
@pytest.mark.timeout(20)
def test_a_line_made_to_be_slow_does_not_hold_up_the_next(line: str) -> None:
    found = read(f"{line}\n".encode() * 50 + b"\nstep 7/10 loss=0.5\n")
    assert (found.step, found.lines) == (7, 51)


def test_totals_that_the_user_knows_give_an_eta_where_the_log_has_none() -> None:
    data = (CORPUS / "imagenet.log").read_bytes()
    found = read(data, epochs=2)
    assert found.progress == pytest.approx((5005 + 501) / 10010)
    assert found.eta_s == pytest.approx((10010 - 5506) * 0.4, rel=0.01)


def test_a_count_that_goes_back_is_a_restart() -> None:
    lines = [f"2026-01-31T12:00:{s:02}Z step {n}/100" for s, n in enumerate((1, 2, 3, 4, 2, 3, 4))]
    found = read("\n".join(lines).encode())
    assert (found.restarts, found.step, found.progress) == (1, 4, 0.04)


def test_steps_that_begin_anew_with_each_epoch_are_no_restart() -> None:
    lines = [f"epoch {e} step {n} loss 0.5" for e in (1, 2, 3) for n in (10, 20, 30)]
    stamped = [f"2026-01-31T12:00:{s:02}Z {line}" for s, line in enumerate(lines)]
    found = read("\n".join(stamped).encode(), epochs=4)
    assert (found.restarts, found.progress) == (0, 0.75)


def test_times_of_the_caller_count_where_lines_have_none() -> None:
    reader = LogReader()
    for step in range(20):
        reader.feed(f"step {step}/100\n".encode(), at=1000 + 2.0 * step)
    found = reader.findings()
    assert (found.rate, found.eta_s) == (pytest.approx(0.5), pytest.approx(162))


def test_a_users_pattern_reads_what_no_format_knows() -> None:
    pattern = UserPattern(r"^(?P<step>\d+)\|(?P<steps>\d+)\|(?P<rate>[\d.]+)/s L(?P<loss>\S+)")
    found = read(b"3|50|2.0/s L0.75\nsomething else step 9\n", pattern=pattern)
    assert (found.step, found.steps, found.rate, found.loss) == (3, 50, 2.0, 0.75)
    assert found.eta_s == pytest.approx(23.5)
