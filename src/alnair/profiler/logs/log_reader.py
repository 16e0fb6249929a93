"""A log as a stream of bytes into findings: framework, step, epoch, loss, rate and ETA."""

import math
from collections import Counter
from typing import TYPE_CHECKING, Any

import msgspec

from alnair.profiler.logs import model_size
from alnair.profiler.logs.lines import LineReader
from alnair.profiler.logs.model_size import ModelSize
from alnair.profiler.logs.parser import LineParser
from alnair.profiler.logs.position import Place, Position
from alnair.profiler.logs.printed_pace import PrintedPace
from alnair.profiler.logs.reading import FRAMEWORKS, Reading
from alnair.profiler.progress.tracker import Progress, ProgressTracker

if TYPE_CHECKING:  # RE2 takes 3 MiB, which only who has a pattern needs
    from alnair.profiler.logs.user_pattern import UserPattern


class LogFindings(msgspec.Struct, frozen=True):
    """What a log has said so far: numbers, and names of ours. What it has not said is None.

    Attributes:
        framework: One of `reading.FRAMEWORKS`, or None.
        step: The last step, as printed.
        steps: Of how many: of the epoch or of all, as printed.
        epoch: The last epoch, as printed.
        epochs: How many there will be.
        loss: The last loss that was a number.
        accuracy: The last accuracy: a part of 1, or percent, as printed.
        rate: Steps per second, breaks left out.
        samples_per_s: Samples per second: images, tokens, whatever it counts.
        progress: Done of all, 0 to 1.
        eta_s: Seconds until all is done, from the log's last step on.
        eta_low_s: The time is between this...
        eta_high_s: ...and this in about 80 of 100 cases.
        restarts: How often the steps went back.
        done: Steps by now, over all epochs.
        at: When the last of them came; None where the lines have no times.
        diverged: Whether the last loss was no number, or infinite.
        lines: Lines that were looked at.
        readings: Lines of those that were of a training.
        model: What it said of the model's size.
    """

    framework: str | None = None
    step: int | None = None
    steps: int | None = None
    epoch: float | None = None
    epochs: float | None = None
    loss: float | None = None
    accuracy: float | None = None
    rate: float | None = None
    samples_per_s: float | None = None
    progress: float | None = None
    eta_s: float | None = None
    eta_low_s: float | None = None
    eta_high_s: float | None = None
    restarts: int = 0
    done: float | None = None
    at: float | None = None
    diverged: bool = False
    lines: int = 0
    readings: int = 0
    model: ModelSize = ModelSize()


class LogReader:
    """Reads one container's log; memory does not grow with it.

    Time is taken from the lines where they begin with one, else from the caller, else from the
    rates that the log prints.

    Args:
        pattern: The user's, instead of all known formats.
        steps: All steps that there will be, where the log does not say.
        epochs: The same for epochs.
    """

    def __init__(
        self,
        pattern: "UserPattern | None" = None,
        steps: int | None = None,
        epochs: float | None = None,
    ) -> None:
        self._lines = LineReader()
        self._parser = LineParser(pattern)
        self._place = Place(steps, epochs)
        self._printed = PrintedPace()
        self._is_stamped = self._is_timed = False
        self._tracker = ProgressTracker()
        self._unit = ""
        self._frameworks: Counter[str] = Counter()
        self._found = LogFindings()
        self._model = ModelSize()
        self._count = 0

    def feed(self, data: bytes, at: float | None = None) -> None:
        """Take a piece of the log.

        Args:
            data: Bytes, cut anywhere.
            at: When they came, seconds of any clock; None where that says nothing, as of a file.
        """
        for line in self._lines.feed(data):
            self._take(line, at)

    def close(self) -> None:
        """Take what was left without an end of line: the log has ended."""
        for line in self._lines.close():
            self._take(line, None)

    def findings(self, now: float | None = None) -> LogFindings:
        """Return what is known by now.

        Args:
            now: On the clock of the lines; by default when the last step came.
        """
        timed = self._is_stamped or self._is_timed
        progress = (self._tracker if timed else self._printed).estimate(now)
        each = progress.step_seconds if progress else self._printed.seconds
        speed = 1 / (each or self._printed.seconds or math.inf) or None
        samples = self._found.samples_per_s
        if self._unit == "sample" and timed:
            samples = speed or samples
        place = self._place
        return msgspec.structs.replace(
            self._found,
            framework=self._framework(),
            step=place.step,
            steps=place.steps,
            epoch=place.epoch,
            epochs=place.epochs,
            rate=None if self._unit in ("sample", "epoch") else speed,
            samples_per_s=samples,
            lines=self._count,
            model=self._model,
            **_timed(progress),
        )

    def _framework(self) -> str | None:
        if not self._frameworks:
            return None
        most = max(self._frameworks.values())
        return next(name for name in FRAMEWORKS if self._frameworks[name] == most)

    def _take(self, line: str, at: float | None) -> None:
        self._count += 1
        self._model = model_size.read(line, self._model)
        found = self._parser.read(line)
        if found is None:
            return
        if found.framework:
            self._frameworks[found.framework] += 1
        self._found = _latest(self._found, found)
        if not found.is_training:
            return
        position = self._place.take(found)
        if position is not None or found.step is None:  # else of a bar of something else
            self._printed.add(found.step_seconds)
        if position is not None:
            self._advance(position, found, at)

    def _advance(self, position: Position, found: Reading, at: float | None) -> None:
        self._printed.be_at(position)
        is_better = found.at is not None and not self._is_stamped
        if is_better or position.unit != self._unit:
            self._tracker, self._unit = ProgressTracker(), position.unit
        self._is_stamped |= found.at is not None
        self._is_timed |= at is not None
        when = found.at if self._is_stamped else at
        if when is not None:
            self._tracker.add(when, position.done, position.total)


def _latest(old: LogFindings, found: Reading) -> LogFindings:
    loss, diverged = old.loss, old.diverged
    if found.loss is not None:
        diverged = not math.isfinite(found.loss)
        loss = loss if diverged else found.loss
    accuracy = old.accuracy
    if found.accuracy is not None and math.isfinite(found.accuracy):
        accuracy = found.accuracy
    return msgspec.structs.replace(
        old,
        loss=loss,
        diverged=diverged,
        accuracy=accuracy,
        samples_per_s=found.samples_per_s or old.samples_per_s,
        readings=old.readings + found.is_training,
    )


def _timed(progress: Progress | None) -> dict[str, Any]:
    if progress is None:
        return {}
    return {
        "progress": progress.fraction,
        "eta_s": progress.eta_s,
        "eta_low_s": progress.eta_low_s,
        "eta_high_s": progress.eta_high_s,
        "restarts": progress.restarts,
        "done": progress.done,
        "at": progress.at,
    }
