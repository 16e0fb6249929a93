"""Lines into readings, by the formats that are known and by the user's own pattern."""

import math
from collections.abc import Callable
from typing import TYPE_CHECKING

import msgspec

from alnair.profiler.logs import stamps
from alnair.profiler.logs.formats import bars, examples, fastai, keras, key_values, megatron
from alnair.profiler.logs.formats import transformers as hugging_face
from alnair.profiler.logs.reading import HOROVOD, Reading

if TYPE_CHECKING:  # RE2 takes 3 MiB, which only who has a pattern needs
    from alnair.profiler.logs.user_pattern import UserPattern

_FORMATS: tuple[Callable[[str], Reading | None], ...] = (
    bars.read,
    keras.read,
    examples.read,
    hugging_face.read,
    megatron.read,
)
#: What names beside numbers add to a line of a known format.
_ADDED = ("loss", "accuracy", "epoch", "epoch_base", "epochs", "step_seconds", "samples_per_s")
#: Counts beyond this are no counts, but other numbers, such as a time in nanoseconds.
_MOST = 10**15


class LineParser:
    """Reads lines one by one; it remembers nothing of them but the head of a table.

    Args:
        pattern: Of the user; then no other format is looked for.
    """

    def __init__(self, pattern: "UserPattern | None" = None) -> None:
        self._pattern = pattern
        self._table = fastai.Table()

    def read(self, line: str) -> Reading | None:
        """Return what a clean line says, None where it says nothing of a training."""
        at, rank, text = stamps.split(line)
        if rank:
            return None  # rank 0 says the same, and steps of several would be counted as restarts
        found = self._pattern.read(text) if self._pattern else self._known(text)
        if found is None or not _is_sane(found):
            return None
        if found.steps == 0 or found.epochs == 0:  # of nothing: no total
            found = msgspec.structs.replace(
                found, steps=found.steps or None, epochs=found.epochs or None
            )
        if rank is not None and "<std" in line[:40] and not self._pattern:
            found = msgspec.structs.replace(found, framework=HOROVOD)
        return msgspec.structs.replace(found, at=at) if at is not None else found

    def _known(self, text: str) -> Reading | None:
        for read in _FORMATS:
            found = read(text)
            if found is not None:
                return _completed(found, text) if found.is_training else found
        return self._table.read(text) or key_values.read(text)


def _completed(found: Reading, text: str) -> Reading:
    """Return it with what stands beside it under well-known names."""
    more = key_values.read(text)
    if more is None:
        return found
    missing = [name for name in _ADDED if getattr(found, name) is None]
    return msgspec.structs.replace(found, **{name: getattr(more, name) for name in missing})


def _is_sane(found: Reading) -> bool:
    counts = (found.step, found.steps, found.epoch, found.epochs)
    return all(one is None or (math.isfinite(one) and 0 <= one < _MOST) for one in counts)
