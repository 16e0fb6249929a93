"""A training that was run and sampled: what it logged, what it used, and what is told of that."""

import gzip
import itertools
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

from alnair.profiler.even_grid import Refusal
from alnair.profiler.gpu_iteration import iteration_of_gpus
from alnair.profiler.iteration import Iteration, iteration_time
from alnair.profiler.logs.log_reader import LogReader
from lib import process_samples

#: Seconds of one sample of the driver, on many GPUs (nvidia-smi's manual: 1/6 s to 1 s).
DRIVER_SAMPLE = 1 / 6
#: When the logs began, seconds since the epoch: any time will do.
_BEGAN = 1.7e9
PROGRAM = Path(__file__).parent / "cpu_training.py"


class RecordedTraining(msgspec.Struct):
    """A run, from its first step on.

    Attributes:
        name: Of the training.
        torch: Version.
        steps: When each step began, seconds.
        breaks: When something else began (an evaluation, a checkpoint, the end): seconds.
        times: Of the samples, on the same clock.
        cpu_cores: What was sampled: processors in use.
        memory_mib: Resident.
    """

    name: str
    torch: str
    steps: list[float]
    breaks: list[float]
    times: list[float]
    cpu_cores: list[float]
    memory_mib: list[float]

    def step_lengths(self) -> list[float]:
        """Seconds from step to step, without those that something else came between."""
        marked = sorted([(at, True) for at in self.steps] + [(at, False) for at in self.breaks])
        return [
            later - at
            for (at, step), (later, next_step) in itertools.pairwise(marked)
            if step and next_step
        ]

    def told(self) -> Iteration | Refusal:
        """What the samples tell."""
        times = np.array(self.times)
        metrics = {"cpu_cores": np.array(self.cpu_cores), "memory_mib": np.array(self.memory_mib)}
        return iteration_time({name: (times, values) for name, values in metrics.items()})

    def told_by_log(self) -> float | None:
        """What its log tells the agent: a line a step, and the kubelet's time of each."""
        reader = LogReader()
        for number, at in enumerate(self.steps):
            reader.feed(f"step={number} loss=0.5\n".encode(), _BEGAN + at)
        rate = reader.findings().rate
        return 1 / rate if rate else None

    def told_by_driver(self, phase: float = 0.0) -> float | Refusal:
        """What the driver's own samples would tell, were its processors a GPU: whole percents.

        Args:
            phase: Of the driver's samples: a part of one.
        """
        times, cores = np.array(self.times), np.array(self.cpu_cores)
        worked = np.concatenate([[0.0], np.cumsum(cores[1:] * np.diff(times))])
        ends = np.arange(times[0] + phase * DRIVER_SAMPLE, times[-1], DRIVER_SAMPLE)
        means = np.diff(np.interp(ends, times, worked)) / DRIVER_SAMPLE
        percents = np.clip(np.round(100 * means), 0, 100)
        found = iteration_of_gpus({"gpu": (ends[1:], percents)})
        return found if isinstance(found, Refusal) else found.seconds

    def verdict(self) -> dict[str, Any]:
        """Figures of the logged and the told time of a step, seconds."""
        lengths = self.step_lengths()
        logged = statistics.median(lengths)
        low, _, high = statistics.quantiles(lengths, n=4)
        told = self.told()
        by_log, by_driver = self.told_by_log(), self.told_by_driver()
        found: dict[str, Any] = {
            "steps": len(lengths),
            "logged": logged,
            "spread": (high - low) / logged,
            "log_error": by_log / logged - 1 if by_log else None,
            "driver_error": None if isinstance(by_driver, Refusal) else by_driver / logged - 1,
        }
        if isinstance(told, Refusal):
            return found | {"why_not": told.reason}
        error = told.seconds / logged - 1
        return found | {"told": told.seconds, "metric": told.metric, "error": error}


def run(python: str, name: str, seconds: float, step: float, hertz: float) -> RecordedTraining:
    """Run a training and sample it.

    Raises:
        RuntimeError: It failed; the message has its last words.
    """
    arguments = [name, f"--seconds={seconds}", f"--step={step}"]
    with tempfile.TemporaryFile("w+") as log:
        process = process_samples.start([python, str(PROGRAM), *arguments], log)
        samples = process_samples.watch(process, hertz)
        log.seek(0)
        said = log.read()
    if process.returncode:
        raise RuntimeError(f"{name} failed: {said[-500:]}")
    return made_of(name, said.splitlines(), samples)


def made_of(name: str, said: list[str], samples: process_samples.Samples) -> RecordedTraining:
    """Put a log and samples together, in seconds since the first step."""
    lines = [json.loads(line) for line in said if line.startswith("{")]
    steps = [line["at"] for line in lines if "step" in line]
    breaks = [line["at"] for line in lines if "event" in line]
    start = steps[0]
    kept = [i for i, at in enumerate(samples.times) if at >= start]
    return RecordedTraining(
        name=name,
        torch=next(line["torch"] for line in lines if "torch" in line),
        steps=[round(at - start, 4) for at in steps],
        breaks=[round(at - start, 4) for at in breaks],
        times=[round(samples.times[i] - start, 4) for i in kept],
        cpu_cores=[round(samples.cpu_cores[i], 3) for i in kept],
        memory_mib=[round(samples.memory_mib[i], 1) for i in kept],
    )


def save(training: RecordedTraining, folder: Path) -> None:
    """Write it to a file named after it, the same bytes for the same values."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{training.name}.json.gz"
    path.write_bytes(gzip.compress(msgspec.json.encode(training), mtime=0))


def load(path: Path) -> RecordedTraining:
    """Read one."""
    return msgspec.json.decode(gzip.decompress(path.read_bytes()), type=RecordedTraining)


def has_torch(python: str) -> bool:
    """Can this Python import torch?"""
    try:
        tried = subprocess.run([python, "-c", "import torch"], capture_output=True, check=False)
    except OSError as error:
        sys.exit(f"{python}: {error.strerror}: which Python has torch? Say --python")
    return tried.returncode == 0
