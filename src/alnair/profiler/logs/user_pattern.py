"""The user's own pattern for a log that no known format reads."""

import contextlib
import re
from typing import Final

from alnair.profiler.logs.linear_pattern import LinearPattern, PatternError
from alnair.profiler.logs.numerals import NUMBER, number
from alnair.profiler.logs.reading import Reading

#: What a group may be called → what its number is.
GROUPS: Final = {
    "step": "steps done",
    "steps": "how many there will be",
    "epoch": "the epoch",
    "epochs": "how many there will be",
    "loss": "the loss",
    "accuracy": "the accuracy",
    "rate": "steps per second",
    "step_seconds": "seconds per step",
    "samples_per_s": "samples per second",
}
_MOST_CHARACTERS = 500
_NUMBER = re.compile(NUMBER, re.IGNORECASE)


class UserPattern:
    """A regular expression with named groups, whose time is bounded by the line's length.

    Args:
        text: In the syntax of RE2: that of `re`, without look-around and back references.

    Raises:
        PatternError: It cannot be used; says why and what to write.
    """

    def __init__(self, text: str) -> None:
        if len(text) > _MOST_CHARACTERS:
            raise PatternError(f"it has {len(text)} characters; {_MOST_CHARACTERS} are the most")
        pattern = LinearPattern(text)
        names = ", ".join(GROUPS)
        if unknown := sorted(pattern.groups - set(GROUPS)):
            raise PatternError(f"the group '{unknown[0]}' means nothing here; groups are: {names}")
        if not pattern.groups:
            raise PatternError(
                f"it has no named group, such as (?P<step>\\d+); groups are: {names}"
            )
        self._pattern = pattern

    def read(self, text: str) -> Reading | None:
        """Return the numbers of its groups; a group that has matched no number is left out."""
        found = self._pattern.search(text)
        if found is None:
            return None
        values = {name: _value(one) for name, one in found.items()}
        rate, each = values.get("rate"), values.get("step_seconds")
        if rate and rate > 0:
            each = 1 / rate
        step, steps = values.get("step"), values.get("steps")
        epoch, epochs = values.get("epoch"), values.get("epochs")
        return Reading(
            step=_count(step),
            steps=_count(steps),
            in_epoch=step is not None and epoch is not None and epochs is not None,
            epoch=epoch,
            epoch_base=0 if epoch == 0 else None,
            epochs=epochs,
            loss=values.get("loss"),
            accuracy=values.get("accuracy"),
            step_seconds=each if each and each > 0 else None,
            samples_per_s=values.get("samples_per_s"),
        )


def _value(text: str) -> float | None:
    text = text.strip()
    with contextlib.suppress(ValueError):
        return number(text) if _NUMBER.fullmatch(text) else None
    return None


def _count(value: float | None) -> int | None:
    return int(value) if value is not None and value == value and abs(value) < 1e18 else None
