"""Where a training is, from readings that count steps in different ways.

Some count all steps, some those of an epoch, some samples; bars of evaluations and downloads come
between them and look the same.
"""

import msgspec

from alnair.profiler.logs.reading import Reading

#: A bar that came as far as this part of its total was at its end.
_ENDED = 0.95
#: Readings of a smaller bar without a label after which it is the training's all the same.
_MANY = 50
#: Counts of more bars than these are no bars of one program.
_MOST_BARS = 16


class Position(msgspec.Struct, frozen=True):
    """How far it is: `done` of `total` in a unit, `step`, `sample` or `epoch`."""

    done: float
    total: float | None
    unit: str


class _Bar(msgspec.Struct):
    step: int = 0
    rounds: int = 0
    readings: int = 0


class Place:
    """Follows readings; what the user says of totals stands above what the log says.

    Args:
        steps: All steps that there will be.
        epochs: All epochs that there will be.

    Attributes:
        epoch: The epoch as last printed.
        epochs: How many there will be.
        step: The step as last printed.
        steps: Of how many: of the epoch, or of all.
    """

    def __init__(self, steps: int | None = None, epochs: float | None = None) -> None:
        self._said_steps, self._said_epochs = steps, epochs
        self.epoch: float | None = None
        self.epochs = epochs
        self.step: int | None = None
        self.steps: int | None = None
        self._base: int | None = None
        self._announced: int | None = None
        self._bars: dict[int, _Bar] = {}
        self._main = 0
        self._rounds = 0
        self._round_steps: int | None = None
        self._round_epoch: float | None = None

    def take(self, found: Reading) -> Position | None:
        """Take a reading; return where the training is, None where it does not tell."""
        if not found.is_training:
            return None
        is_plain_bar = found.is_bar and not found.in_epoch
        if is_plain_bar and not self._is_main(found.step or 0, found.steps or 0):
            return None
        self._epoch(found)
        if found.step is None:
            if found.steps is not None:
                self._announced = found.steps
            return self._by_epoch(found)
        position = self._by_step(found, found.step)
        self.step = found.step
        self.steps = found.steps or self._announced or self._said_steps or self.steps
        return position

    def _epoch(self, found: Reading) -> None:
        if found.epochs is not None and self._said_epochs is None:
            self.epochs = found.epochs
        if found.epoch is None:
            return
        self.epoch = found.epoch
        if found.epoch_base is not None and self._base != 0:
            self._base = found.epoch_base

    def _epochs_done(self) -> float:
        if self.epoch is None:
            return float(self._rounds)
        return max(0.0, self.epoch - (1 if self._base is None else self._base))

    def _by_epoch(self, found: Reading) -> Position | None:
        if found.epoch is None or self.step is not None:
            return None
        return Position(self._epochs_done(), self.epochs, "epoch")

    def _by_step(self, found: Reading, step: int) -> Position | None:
        unit = "sample" if found.of_samples else "step"
        bar = self._bars.get(found.steps or 0) if found.is_bar and not found.in_epoch else None
        if found.in_epoch or (bar is not None and bar.rounds):
            if bar is not None:
                self._rounds = bar.rounds
            return self._in_epoch(step, found.steps, unit)
        if self._began_anew(step) and not found.is_bar:
            self._rounds += 1
            self._round_steps = max(self._round_steps or 0, self.step or 0)
        self._round_epoch = self.epoch
        if self._round_steps is not None:
            return self._in_epoch(step, self._round_steps, unit)
        return Position(step, self._said_steps or found.steps or self._announced, unit)

    def _began_anew(self, step: int) -> bool:
        """Tell whether the count began anew with a new epoch, and not by a restart."""
        if self.step is None or step >= self.step or self.epoch is None:
            return False
        return self._round_epoch is not None and self.epoch > self._round_epoch

    def _in_epoch(self, step: int, steps: int | None, unit: str) -> Position | None:
        if not steps:
            return None
        done = int(self._epochs_done()) * steps + min(step, steps)
        total = None if self.epochs is None else self.epochs * steps
        return Position(done, self._said_steps or total, unit)

    def _is_main(self, step: int, total: int) -> bool:
        """Tell whether a bar without an epoch is the training's, and count its rounds."""
        if total not in self._bars and len(self._bars) >= _MOST_BARS:
            return False
        bar = self._bars.setdefault(total, _Bar())
        bar.readings += 1
        if step < bar.step and bar.step >= _ENDED * total:
            bar.rounds += 1
        bar.step = step
        main = self._bars.get(self._main)
        if main is None or self._is_better(total, bar, main):
            self._main = total
        return total == self._main

    def _is_better(self, total: int, bar: _Bar, main: _Bar) -> bool:
        """Tell whether this bar is rather the training's than the one taken for it so far."""
        said = (self._announced, self._said_steps)
        if total in said or self._main in said:
            return total in said
        if total >= self._main:
            return True
        has_ended = main.step >= _ENDED * self._main and not main.rounds
        return has_ended and bar.readings > _MANY
