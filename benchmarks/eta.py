"""How well the time that is left of a training is told, from its steps alone.

    python benchmarks/eta.py [--jobs N] [--logs FOLDER]

Synthetic jobs of eight kinds, N of each, from seeds: even steps; epochs with an evaluation; those
with checkpoints too; steps of very different length; steps that get slower and faster over minutes;
a restart from the last checkpoint; an elastic job that changes its speed, up or down, once; a slow
first epoch. A step is logged once in 1 to 50. At 25, 50, 75 and 90 % of its steps each job is asked
when it will be done; the truth is when its last step was. An elastic job's change is not foreseen
by anybody: where it comes after the question, the error is what it is.

The same of real logs, each line with a time, each to its end: of eight trainings on a busy machine
(data/trainings), or FOLDER/*.log, also compressed. What had to be chosen was chosen on four of
them; held out are the others, and the steps of those in tests/unit/profiler/trainings.

Beside it: `linear`, elapsed time over progress; `window`, the mean of the last 30 lines; and
`tqdm`, its smoothed rate (exponential mean, 0.3). The last line is JSON: medians of the absolute
error over the true remaining time, and the part of the cases in which the interval held it.
"""

import argparse
import gzip
import itertools
import json
import random
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from alnair.profiler.logs.lines import LineReader
from alnair.profiler.logs.parser import LineParser
from alnair.profiler.logs.position import Place
from alnair.profiler.progress.tracker import ProgressTracker
from lib import machine

#: Seen lines of a job: time, steps done; and the number of its steps.
Seen = list[tuple[float, int]]
TRAININGS = Path(__file__).parent / "data" / "trainings"
RECORDED = Path(__file__).parents[1] / "tests" / "unit" / "profiler" / "trainings"
#: Real logs on which `progress.pace` was made; all others are held out.
CHOSEN_ON = ("cnn-decoding", "gru-checkpoints", "rnn-input-bound", "transformer-evaluated")
ASKED = (0.25, 0.5, 0.75, 0.9)
#: At most this median error from 25 % on, over all synthetic jobs, and over all real logs.
PROMISED = 0.10


def job(kind: str, chance: random.Random) -> tuple[Seen, int]:
    """A made-up job as its log shows it."""
    total = chance.randrange(400, 4000)
    each = 10 ** chance.uniform(-1.3, 1.0)
    noise = 0.8 if kind == "uneven" else chance.uniform(0.02, 0.3)
    epoch = total // chance.randrange(4, 12)
    evaluation = epoch * each * chance.uniform(0.05, 0.4)
    checkpoint, saving = max(20, total // chance.randrange(10, 40)), each * chance.uniform(5, 50)
    change, factor = chance.uniform(0.1, 0.9), chance.choice((0.5, 0.67, 1.5, 2.0))
    fails, every, drift = chance.uniform(0.1, 0.8), chance.choice((1, 5, 10, 20, 50)), 0.0
    at, done, has_failed = 1000.0 + 30 * chance.random(), 0, False
    seen = [(at, 0)]
    while done < total:
        pace = each
        if kind == "elastic" and done > change * total:
            pace *= factor
        if kind == "drifting":
            drift = 0.995 * drift + 0.02 * chance.gauss(0, 1)
            pace *= 2.718**drift
        if kind == "slow-start" and done < epoch:
            pace *= 1.6
        at += pace * chance.lognormvariate(-(noise**2) / 2, noise) + (20 * each if done == 0 else 0)
        done += 1
        if done % every == 0 or done == total:
            seen.append((at, done))
        if kind in ("epochs", "checkpoints") and done % epoch == 0:
            at += evaluation * chance.uniform(0.9, 1.1)
        if kind == "checkpoints" and done % checkpoint == 0:
            at += saving * chance.uniform(0.8, 1.2)
        if kind == "restart" and not has_failed and done > fails * total:
            has_failed = True
            at += chance.uniform(30, 900)
            done = done // checkpoint * checkpoint
            seen.append((at, done))
    return seen, total


KINDS = ("even", "epochs", "checkpoints", "uneven", "drifting", "restart", "elastic", "slow-start")


def ours(seen: Seen, total: int) -> tuple[float, float, float]:
    tracker = ProgressTracker()
    for at, done in seen:
        tracker.add(at, done, total)
    found = tracker.estimate()
    if found is None or found.eta_s is None:
        return 0.0, 0.0, 0.0
    return found.eta_s, found.eta_low_s or 0.0, found.eta_high_s or 0.0


def linear(seen: Seen, total: int) -> float:
    (begin, first), (now, done) = seen[0], seen[-1]
    return (now - begin) / max(1, done - first) * (total - done)


def window(seen: Seen, total: int) -> float:
    return linear(seen[-30:], total) if seen[-30:][0][1] < seen[-1][1] else linear(seen, total)


def tqdm(seen: Seen, total: int) -> float:
    each = 0.0
    for (a, before), (b, after) in itertools.pairwise(seen):
        if after > before:
            now = (b - a) / (after - before)
            each = 0.3 * now + 0.7 * each if each else now
    return each * (total - seen[-1][1])


BESIDE: dict[str, Callable[[Seen, int], float]] = {"linear": linear, "window": window, "tqdm": tqdm}


def judge(seen: Seen, total: int) -> list[dict[str, float]]:
    """Ask at each part of the progress; return errors, and whether the interval held the truth."""
    end, answers = seen[-1][0], []
    for part in ASKED:
        place = next(n for n, (_, done) in enumerate(seen) if done >= part * total)
        known = seen[: place + 1]
        left = end - known[-1][0]
        if left <= 0 or known[-1][1] >= total:
            continue
        eta, low, high = ours(known, total)
        answer = {"at": part, "alnair": abs(eta - left) / left, "held": float(low <= left <= high)}
        answer |= {name: abs(told(known, total) - left) / left for name, told in BESIDE.items()}
        answers.append(answer)
    return answers


def read_log(path: Path) -> tuple[Seen, int]:
    """Return the steps of a real log, as our own parser sees them."""
    seen: Seen = []
    total = 0
    lines, parser, place = LineReader(), LineParser(), Place()
    data = path.read_bytes()
    for line in lines.feed(gzip.decompress(data) if path.suffix == ".gz" else data):
        found = parser.read(line)
        position = place.take(found) if found else None
        if found and found.at is not None and position and position.unit == "step":
            seen.append((found.at, round(position.done)))
            total = round(position.total or 0)
    return seen, total


def recorded() -> dict[str, list[dict[str, float]]]:
    """Judge the steps of recorded trainings, each of which ended with its last one."""
    found = {}
    for path in sorted(RECORDED.glob("*.json.gz")):
        steps = json.loads(gzip.decompress(path.read_bytes()))["steps"]
        found[path.name.partition(".")[0]] = judge(
            [(1e9 + at, number) for number, at in enumerate(steps)], len(steps) - 1
        )
    return found


def summary(answers: list[dict[str, float]]) -> dict[str, float]:
    names = ("alnair", *BESIDE)
    told = {name: round(statistics.median(one[name] for one in answers), 4) for name in names}
    told["within_10"] = round(statistics.mean(one["alnair"] <= 0.1 for one in answers), 3)
    told["interval"] = round(statistics.mean(one["held"] for one in answers), 3)
    return told


def main() -> None:
    parser = argparse.ArgumentParser(description="Judge remaining times of trainings.")
    parser.add_argument("--jobs", type=int, default=100, help="of each kind")
    parser.add_argument("--logs", type=Path, default=TRAININGS, help="a folder of real logs")
    arguments = parser.parse_args()
    by_kind: dict[str, list[dict[str, float]]] = defaultdict(list)
    for kind in KINDS:
        for seed in range(arguments.jobs):
            by_kind[kind] += judge(*job(kind, random.Random(f"{kind} {seed}")))
    everything = [one for answers in by_kind.values() for one in answers]
    result: dict[str, object] = {"machine": machine.describe(), "jobs": arguments.jobs}
    result["all"] = summary(everything)
    result["kinds"] = {kind: summary(answers) for kind, answers in by_kind.items()}
    result["at"] = {f"{p:g}": summary([o for o in everything if o["at"] == p]) for p in ASKED}
    logs = sorted(arguments.logs.glob("*.log*"))
    real = {path.name.partition(".")[0]: judge(*read_log(path)) for path in logs}
    result["real"] = {name: summary(answers) for name, answers in real.items() if answers}
    of_logs = [one for answers in real.values() for one in answers]
    result["real_all"] = summary(of_logs)
    others = [one for answers in recorded().values() for one in answers]
    held_out = [one for name, of in real.items() if name not in CHOSEN_ON for one in of]
    result["held_out_logs"] = summary(held_out or of_logs)
    result["held_out"] = summary(held_out + others)
    shown = {"all": result["all"], **result["kinds"]}  # type: ignore[dict-item]
    shown |= {name: result[name] for name in ("held_out_logs", "held_out")}  # type: ignore[misc]
    shown |= {"real": result["real_all"], **result["real"]}  # type: ignore[dict-item]
    for name, told in shown.items():
        print(f"{name:22}", told)
    print(json.dumps(result))
    for answers in (everything, of_logs, held_out + others):
        median = statistics.median(one["alnair"] for one in answers)
        if median > PROMISED:
            sys.exit(f"the median error is {median:.1%}; {PROMISED:.0%} is promised")


if __name__ == "__main__":
    main()
