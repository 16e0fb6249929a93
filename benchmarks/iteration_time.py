"""Is the iteration time that samples tell that which trainings log?

    python benchmarks/iteration_time.py [--python PYTHON] [--only NAME,...] [--record DIR]
    python benchmarks/iteration_time.py --from DIR

Eleven real trainings (`lib/cpu_training.py`: MLP, CNN, LSTM, GRU, transformer; some wait for their
input, evaluate, write checkpoints or add up micro-batches), each on one core for about a minute,
one after the other. Their processes are sampled 10 times a second from /proc: processors in use and
resident memory. Logged is the median time from step to step, without those that an evaluation or a
checkpoint came between; `spread` is the distance of the quartiles over the median, which on a busy
machine is larger than what is measured.

As the agent sees it, once a second: the log's own step time first, else the driver's own samples
(whole percents, six a second; here of the processors, as if they were a GPU of the pod's alone).
Where these do not tell, the agent says nothing. Held if 8 trainings are told within 2 % each way,
by samples of 10 a second and as the agent sees it, and none of the driver's samples tells wrong.

The trainings need a Python with PyTorch (Debian: apt-get install python3-torch); without one this
says so and measures nothing. --record keeps the runs; --from judges runs that were kept.

The last line is JSON.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from lib import machine, recorded_training
from lib.recorded_training import RecordedTraining

#: Name → seconds of a step that are aimed at, and of the run.
RUNS = {
    "mlp": (1.0, 40),
    "mlp-input-bound": (1.5, 50),
    "cnn": (0.8, 40),
    "cnn-evaluated": (1.2, 60),
    "cnn-decoding": (1.0, 40),
    "rnn": (1.5, 60),
    "rnn-input-bound": (2.0, 60),
    "gru-checkpoints": (1.2, 60),
    "transformer": (2.0, 60),
    "transformer-evaluated": (1.6, 60),
    "transformer-micro-batches": (2.5, 70),
}
HERTZ = 10.0
BOUND = 0.02
LEAST_HELD = 8


def trainings(given: argparse.Namespace) -> Iterator[RecordedTraining]:
    if given.from_folder:
        yield from map(recorded_training.load, sorted(given.from_folder.glob("*.json.gz")))
        return
    for name in given.only or RUNS:
        step, seconds = RUNS[name]
        one = recorded_training.run(given.python, name, seconds, step, HERTZ)
        if given.record:
            recorded_training.save(one, given.record)
        yield one


def _is_held(error: float | None) -> bool:
    return error is not None and abs(error) <= BOUND


def _percent(error: float | None) -> str:
    return "not told" if error is None else f"{error:+.1%}"


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--python", default="/usr/bin/python3", help="a Python with torch")
    parser.add_argument("--only", type=lambda text: text.split(","), help="these trainings")
    parser.add_argument("--record", type=Path, metavar="DIR", help="keep the runs there")
    parser.add_argument("--from", dest="from_folder", type=Path, metavar="DIR")
    given = parser.parse_args()
    for name in given.only or ():
        if name not in RUNS:
            parser.error(f"--only {name}: known are {', '.join(RUNS)}")
    if given.from_folder and not list(given.from_folder.glob("*.json.gz")):
        parser.error(f"--from {given.from_folder}: no run was kept there")
    if not given.from_folder and not recorded_training.has_torch(given.python):
        why = f"{given.python} has no PyTorch: apt-get install python3-torch, or say --python"
        say(why)
        print(json.dumps({"benchmark": "iteration_time", "held": None, "skipped": why}))
        return 0
    say(machine.describe())
    result: dict[str, Any] = {}
    for one in trainings(given):
        found = result[one.name] = one.verdict()
        line = f"{one.name}: {found['steps']} steps of {found['logged']:.3f} s"
        line += f" (spread {found['spread']:.0%}), "
        if "error" in found:
            line += f"told {found['told']:.3f} s by {found['metric']}: {found['error']:+.1%}"
        else:
            line += f"not told: {found['why_not']}"
        say(line)
        log, driver = (_percent(found[key]) for key in ("log_error", "driver_error"))
        say(f"    as the agent sees it: by the log {log}, by the driver's samples {driver}")
    within = [name for name, found in result.items() if abs(found.get("error", 1.0)) <= BOUND]
    wrong = [name for name, found in result.items() if abs(found.get("error", 0.0)) > BOUND]
    agent = [name for name, found in result.items() if _is_held(found["log_error"])]
    told = {name: found["driver_error"] for name, found in result.items()}
    driver = [name for name, error in told.items() if _is_held(error)]
    driver_wrong = [name for name, error in told.items() if abs(error or 0.0) > BOUND]
    needed = min(LEAST_HELD, len(result))
    held = len(within) >= needed and len(agent) >= needed and not driver_wrong
    say(f"{len(within)} of {len(result)} within {BOUND:.0%}, {len(wrong)} told wrong")
    say(f"as the agent sees it: by logs {len(agent)}, by the driver's samples {len(driver)} within")
    say(f"    {BOUND:.0%}, {len(driver_wrong)} told wrong, the others not told")
    print(json.dumps({"benchmark": "iteration_time", "held": held, "trainings": result}))
    return 0 if held else 1


if __name__ == "__main__":
    sys.exit(main())
