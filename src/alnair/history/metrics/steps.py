"""Quantities that change at moments and are constant between them."""

import msgspec
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


class Steps(msgspec.Struct, frozen=True):
    """`values[i]` holds from `times[i]` to `times[i + 1]`, the last one for ever; before, 0.

    `times` grows strictly; both have the shape (steps,).
    """

    times: Floats
    values: Floats

    def within(self, begin: float, end: float) -> "Steps":
        """Return the same between two moments only, with a step at each of them."""
        first = int(np.searchsorted(self.times, begin, side="right"))
        last = int(np.searchsorted(self.times, end, side="left"))
        before = self.values[first - 1] if first else 0.0
        return Steps(
            np.concatenate(([begin], self.times[first:last])),
            np.concatenate(([before], self.values[first:last])),
        )

    def integral(self, begin: float, end: float) -> float:
        """Return the quantity times seconds between two moments."""
        if end <= begin:
            return 0.0
        part = self.within(begin, end)
        return float(np.dot(part.values, np.diff(part.times, append=end)))

    def mean(self, begin: float, end: float) -> float:
        """Return the mean over time; 0 over no time."""
        return self.integral(begin, end) / (end - begin) if end > begin else 0.0

    def peak(self, begin: float, end: float) -> float:
        """Return the largest value between two moments."""
        return float(self.within(begin, end).values.max())

    def at(self, times: Floats) -> Floats:
        """Return the values from these moments on."""
        rows = np.searchsorted(self.times, times, side="right")
        found: Floats = np.concatenate(([0.0], self.values))[rows]
        return found

    def means(self, edges: Floats) -> Floats:
        """Return the mean between each two neighbours of `edges`, which grow strictly.

        Returns:
            The shape (edges - 1,).
        """
        if not len(self.times):
            return np.zeros(len(edges) - 1)
        area = np.concatenate(([0.0], np.cumsum(self.values[:-1] * np.diff(self.times))))
        at = np.searchsorted(self.times, edges, side="right") - 1
        known = at >= 0
        at = np.maximum(at, 0)
        until = np.where(known, area[at] + self.values[at] * (edges - self.times[at]), 0.0)
        found: Floats = np.diff(until) / np.diff(edges)
        return found


def together(*some: Steps) -> tuple[Floats, list[Floats]]:
    """Return all moments at which any of these changes, and the values of each from then on."""
    times = np.unique(np.concatenate([steps.times for steps in some]))
    return times, [steps.at(times) for steps in some]


def summed(times: Floats, changes: Floats) -> Steps:
    """Return the sum of changes, each of which happens at a time; in any order."""
    if not len(times):
        return Steps(np.zeros(0), np.zeros(0))
    order = np.argsort(times, kind="stable")
    times, values = times[order], np.cumsum(changes[order])
    # Of what happens at one moment only the outcome counts.
    last = np.append(times[1:] != times[:-1], True)
    return Steps(times[last], values[last])


def held(begins: Floats, ends: Floats, amounts: Floats) -> Steps:
    """Return the sum of amounts, each held from a begin to an end."""
    return summed(np.concatenate((begins, ends)), np.concatenate((amounts, -amounts)))
