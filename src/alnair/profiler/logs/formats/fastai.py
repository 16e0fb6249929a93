"""fastai's table: its head says what the columns are.

epoch     train_loss  valid_loss  accuracy  time
0         0.512345    0.401234    0.861000  01:12
"""

import re

from alnair.profiler.logs.numerals import seconds
from alnair.profiler.logs.reading import FASTAI, Reading

_HEAD = re.compile(r"epoch\s{1,20}train_loss(?:\s{1,20}\w{1,40}){0,20}")
_CLOCK = re.compile(r"\d{1,4}:\d{2}(?::\d{2})?")


class Table:
    """Rows below the last head that was seen."""

    def __init__(self) -> None:
        self._columns: list[str] = []

    def read(self, text: str) -> Reading | None:
        """Return what a row says, None where this is none."""
        if _HEAD.fullmatch(text):
            # Of the names, which are another's text, only where ours are is kept.
            kept = ("epoch", "train_loss", "accuracy", "time")
            self._columns = [name if name in kept else "" for name in text.split()]
            return Reading(FASTAI)
        if not self._columns or not text[:1].isdigit():
            return None
        cells = text.split()
        if len(cells) != len(self._columns):
            return None
        row = dict(zip(self._columns, cells, strict=True))
        try:
            epoch = int(row["epoch"])
            loss = float(row["train_loss"])
            accuracy = float(row["accuracy"]) if "accuracy" in row else None
        except ValueError:
            return None
        clock = row.get("time", "")
        # An epoch of the table is done.
        return Reading(
            FASTAI,
            epoch=epoch + 1,
            epoch_base=0,
            loss=loss,
            accuracy=accuracy,
            step_seconds=seconds(clock) if _CLOCK.fullmatch(clock) else None,
        )
