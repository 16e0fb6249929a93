"""How soon and how surely slow ranks of a distributed training are named.

    python benchmarks/stragglers.py [--runs N]

Real step times: those of ten workers each of two trainings on Alibaba's PAI (data/pai-minibatch).
Two questions:

- as they are: which ranks are named, and when. Their authors name one straggler, worker 6 of the
  first job, in the middle; the second job has none, though its workers differ.
- N times with something done to them, from seeds, away from the real straggler: one rank, now and
  then two, gets 1.25 to 2.5 times slower for at least 30 steps; single steps of any rank take 2 to
  6 times as long (a garbage collection); and all ranks slow down together for a while. Only the
  first is a straggler. A name is right if that rank is slow at that step or was 10 steps ago; found
  means named within 10 steps of its begin.

Beside it: `each`, a rank above 1.2 times the median of a step; `z`, two and a half standard
deviations above the mean of a step; `mean10`, the mean of the last ten steps above 1.2 times the
ranks' median.
The last line is JSON.
"""

import argparse
import csv
import gzip
import json
import random
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from alnair.profiler.stragglers import StragglerDetector
from lib import machine

DATA = Path(__file__).parent / "data" / "pai-minibatch"
#: Steps: rank → its time.
Steps = list[dict[int, float]]
#: Named: rank and step, each step anew.
Named = set[tuple[int, int]]
SOON = 10
#: Precision and part found, which must hold.
PROMISED = (0.99, 0.95)


def read(job: int) -> Steps:
    """Return the steps of a job that all of its workers have done."""
    times: dict[int, list[float]] = defaultdict(list)
    with gzip.open(DATA / f"job_{job}_norm.csv.gz", "rt") as file:
        for row in csv.DictReader(file):
            times[int(row["worker"])].append(float(row["batch_time_norm"]))
    shortest = min(map(len, times.values()))
    return [{rank: of[step] for rank, of in times.items()} for step in range(shortest)]


def ours(steps: Steps) -> Named:
    detector = StragglerDetector()
    return {(one.rank, n) for n, step in enumerate(steps) for one in detector.add(step)}


def each(steps: Steps) -> Named:
    named = set()
    for n, step in enumerate(steps):
        limit = 1.2 * statistics.median(step.values())
        named |= {(rank, n) for rank, time in step.items() if time > limit}
    return named


def z(steps: Steps) -> Named:
    named = set()
    for n, step in enumerate(steps):
        limit = statistics.mean(step.values()) + 2.5 * statistics.pstdev(step.values())
        named |= {(rank, n) for rank, time in step.items() if time > limit}
    return named


def mean10(steps: Steps) -> Named:
    named = set()
    for n in range(SOON - 1, len(steps)):
        last = steps[n - SOON + 1 : n + 1]
        means = {rank: statistics.mean(step[rank] for step in last) for rank in last[0]}
        limit = 1.2 * statistics.median(means.values())
        named |= {(rank, n) for rank, mean in means.items() if mean > limit}
    return named


DETECTORS: dict[str, Callable[[Steps], Named]] = {
    "alnair": ours,
    "each": each,
    "z": z,
    "mean10": mean10,
}


def harmed(steps: Steps, chance: random.Random) -> tuple[Steps, list[tuple[int, int, int]]]:
    """Return the steps with something done to them, and the stragglers: rank, begin, end."""
    steps = [dict(step) for step in steps]
    truth = []
    length = len(steps)
    for _ in range(chance.choice((1, 1, 1, 2))):
        begin = chance.randrange(40, length - 40)
        end = min(length, begin + chance.randrange(30, 80))
        rank, factor = chance.randrange(len(steps[0])), chance.uniform(1.25, 2.5)
        if any(rank == other for other, _, _ in truth):
            continue
        truth.append((rank, begin, end))
        for step in steps[begin:end]:
            step[rank] *= factor
    for _ in range(chance.randrange(5, 20)):
        step = chance.choice(steps)
        step[chance.randrange(len(step))] *= chance.uniform(2, 6)
    begin, factor = chance.randrange(length - 40), chance.uniform(1.2, 2)
    for step in steps[begin : begin + 40]:
        for rank in step:
            step[rank] *= factor
    return steps, truth


def judge(runs: int) -> dict[str, dict[str, float]]:
    # The first job without its own straggler.
    quiet = [read(1)[:181], read(2)]
    counts = {name: [0, 0, 0, 0] for name in DETECTORS}
    waits: dict[str, list[int]] = defaultdict(list)
    for seed in range(runs):
        chance = random.Random(seed)
        steps, truth = harmed(quiet[seed % 2], chance)
        for name, detect in DETECTORS.items():
            named, count = detect(steps), counts[name]
            for rank, n in named:
                right = any(rank == r and begin <= n < end + SOON for r, begin, end in truth)
                count[0] += right
                count[1] += not right
            for rank, begin, end in truth:
                soon = [n for n in range(begin, min(end, begin + SOON)) if (rank, n) in named]
                count[2] += bool(soon)
                count[3] += 1
                waits[name] += [soon[0] - begin + 1] if soon else []
    return {
        name: {
            "precision": round(right / max(1, right + wrong), 4),
            "found": round(found / all_, 4),
            "steps_until": statistics.median(waits[name] or [0]),
        }
        for name, (right, wrong, found, all_) in counts.items()
    }


def spans(named: Named) -> list[str]:
    """Say in words which ranks were named from when to when."""
    by_rank: dict[int, list[int]] = defaultdict(list)
    for rank, n in sorted(named):
        by_rank[rank].append(n)
    return [f"worker {r}: {len(of)} steps, {of[0]} to {of[-1]}" for r, of in by_rank.items()]


def main() -> None:
    parser = argparse.ArgumentParser(description="Judge the naming of stragglers.")
    parser.add_argument("--runs", type=int, default=400)
    runs = parser.parse_args().runs
    real = {
        f"job {job}": {name: spans(detect(read(job))) for name, detect in DETECTORS.items()}
        for job in (1, 2)
    }
    told = judge(runs)
    for job, names in real.items():
        for name, found in names.items():
            print(f"{job} {name:8}", "; ".join(found) or "none")
    for name, figures in told.items():
        print(f"{name:8}", figures)
    result = {"machine": machine.describe(), "runs": runs, "real": real, "injected": told}
    print(json.dumps(result))
    if told["alnair"]["precision"] < PROMISED[0] or told["alnair"]["found"] < PROMISED[1]:
        sys.exit(f"precision {PROMISED[0]:.0%} and {PROMISED[1]:.0%} found are promised")


if __name__ == "__main__":
    main()
