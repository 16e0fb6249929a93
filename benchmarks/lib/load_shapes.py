"""Made-up utilisations of a GPU, 0 to 100, of which it is known whether they are cyclic.

What a sampler sees: means over each interval, rounded to whole percents, with noise. The shapes are
those that jobs have; every draw is from a generator that the caller seeds.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]
#: Points of the underlying curve in each second.
_FINE: Final = 20


@dataclass(frozen=True)
class Made:
    """A series and what is true of it.

    Attributes:
        kind: The shape.
        times: Seconds.
        values: Percent.
        period_s: Mean length of its iterations, without breaks; None if it is not cyclic.
    """

    kind: str
    times: Values
    values: Values
    period_s: float | None


@dataclass(frozen=True)
class _Curve:
    """A fine curve and the mean period of what it repeats."""

    values: Values
    period_s: float | None


def cyclic(kind: str, seconds: int, chance: np.random.Generator) -> Made:
    """A training's utilisation of this kind; periods are 2.5 s to a sixth of the time, up to 60."""
    longest = min(60.0, seconds / 6)
    period = float(np.exp(chance.uniform(np.log(2.5), np.log(longest))))
    return _sampled(kind, CYCLIC[kind](seconds, period, chance), seconds, chance)


def other(kind: str, seconds: int, chance: np.random.Generator) -> Made:
    """The utilisation of something that repeats nothing."""
    return _sampled(kind, _Curve(OTHERS[kind](seconds, chance), None), seconds, chance)


def _sampled(kind: str, curve: _Curve, seconds: int, chance: np.random.Generator) -> Made:
    means = curve.values[: seconds * _FINE].reshape(seconds, _FINE).mean(axis=1)
    seen = means + chance.normal(0, 1.0, seconds)
    times = 1.0 + np.arange(seconds) + chance.uniform(-0.03, 0.03, seconds)
    return Made(kind, times, np.clip(np.round(seen), 0, 100), curve.period_s)


def _iterations(
    seconds: int,
    period: float,
    chance: np.random.Generator,
    shape: Callable[[Values], Values],
    *,
    drift: float = 0.0,
    breaks: Callable[[int, Values], Values] | None = None,
) -> _Curve:
    """Iterations one after the other, each 2 % longer or shorter than the period.

    Args:
        seconds: Of the series.
        period: Mean seconds of an iteration.
        chance: What is drawn.
        shape: Percent at each phase, 0 to 1.
        drift: By how much of itself the period grows until the end.
        breaks: After iteration n, what follows it instead of the next one: percent.
    """
    parts, lengths = [], []
    left = chance.uniform(0, period) * _FINE  # the series begins within an iteration
    filled = -left
    number = 0
    while filled < seconds * _FINE:
        grown = 1 + drift * max(filled, 0) / (seconds * _FINE)
        points = max(4, round(period * grown * (1 + chance.normal(0, 0.02)) * _FINE))
        part = shape(np.arange(points) / points)
        lengths.append(points / _FINE)
        parts.append(part)
        filled += points
        number += 1
        if breaks is not None:
            pause = breaks(number, part)
            parts.append(pause)
            filled += len(pause)
    values = np.concatenate(parts)[round(left) :]
    return _Curve(values, float(np.mean(lengths)))


def _levels(chance: np.random.Generator) -> tuple[float, float]:
    return chance.uniform(0, 30), chance.uniform(60, 100)


def _square_shape(chance: np.random.Generator) -> Callable[[Values], Values]:
    low, high = _levels(chance)
    duty = chance.uniform(0.3, 0.85)
    return lambda phase: np.where(phase < duty, high, low)


def _square(seconds: int, period: float, chance: np.random.Generator) -> _Curve:
    return _iterations(seconds, period, chance, _square_shape(chance))


def _sawtooth(seconds: int, period: float, chance: np.random.Generator) -> _Curve:
    low, high = _levels(chance)
    return _iterations(seconds, period, chance, lambda phase: low + (high - low) * phase)


def _two_steps(seconds: int, period: float, chance: np.random.Generator) -> _Curve:
    """Forward and backward at two levels, with a dip between iterations."""
    low, high = _levels(chance)
    middle = low + chance.uniform(0.4, 0.7) * (high - low)
    return _iterations(
        seconds,
        period,
        chance,
        lambda p: np.select(
            [p < 0.3, p < 0.8], [np.full_like(p, middle), np.full_like(p, high)], low
        ),
    )


def _drifting(seconds: int, period: float, chance: np.random.Generator) -> _Curve:
    drift = chance.choice([-1, 1]) * chance.uniform(0.03, 0.1)
    return _iterations(seconds, period, chance, _square_shape(chance), drift=drift)


def _noisy(seconds: int, period: float, chance: np.random.Generator) -> _Curve:
    """Noise of each second with up to half the amplitude as standard deviation."""
    made = _iterations(seconds, period, chance, _square_shape(chance))
    noise = chance.normal(0, chance.uniform(10, 25), seconds + 1).repeat(_FINE)
    return _Curve(made.values[: seconds * _FINE] + noise[: seconds * _FINE], made.period_s)


def _with_checkpoints(seconds: int, period: float, chance: np.random.Generator) -> _Curve:
    every = int(chance.integers(6, 20))
    pause = round(min(chance.uniform(2, 8), 2 * period) * _FINE)

    def breaks(number: int, part: Values) -> Values:
        return np.full(pause if number % every == 0 else 0, part.min())

    return _iterations(seconds, period, chance, _square_shape(chance), breaks=breaks)


def _with_evaluation(seconds: int, period: float, chance: np.random.Generator) -> _Curve:
    """Every few iterations an evaluation: steady, or in shorter cycles of its own."""
    every = int(chance.integers(8, 20))
    length = round(chance.uniform(1.5, 4) * period * _FINE)
    level = chance.uniform(30, 80)
    ripple = chance.uniform(0, 10)

    def breaks(number: int, part: Values) -> Values:
        if number % every:
            return part[:0]
        return level + ripple * np.sign(np.sin(np.arange(length) * 6.3 / (0.37 * len(part))))

    return _iterations(seconds, period, chance, _square_shape(chance), breaks=breaks)


def _started_late(seconds: int, period: float, chance: np.random.Generator) -> _Curve:
    """Loads data first, without the GPU."""
    made = _iterations(seconds, period, chance, _square_shape(chance))
    values = made.values.copy()
    values[: round(chance.uniform(0.1, 0.3) * seconds * _FINE)] = 0
    return _Curve(values, made.period_s)


def _random_walk(seconds: int, chance: np.random.Generator) -> Values:
    steps = np.cumsum(chance.normal(0, chance.uniform(2, 8), seconds)) + chance.uniform(0, 100)
    folded = np.abs((steps + 100) % 200 - 100)  # reflected at 0 and 100
    return folded.repeat(_FINE)


def _on_and_off(
    seconds: int, chance: np.random.Generator, on: Callable[[], float], off: Callable[[], float]
) -> Values:
    values = np.zeros(seconds * _FINE)
    at = off()
    while at < seconds:
        length = on()
        values[round(at * _FINE) : round((at + length) * _FINE)] = chance.uniform(20, 100)
        at += length + off()
    return values


def _inference(seconds: int, chance: np.random.Generator) -> Values:
    """Requests come at random; each takes about as long as the others."""
    gap, length = chance.uniform(2, 25), chance.uniform(0.3, 4)
    return _on_and_off(
        seconds, chance, lambda: length * chance.uniform(0.7, 1.5), lambda: chance.exponential(gap)
    )


def _bursts(seconds: int, chance: np.random.Generator) -> Values:
    """Bursts and pauses of any length: heavy tails."""
    scale, shape = chance.uniform(2, 10), chance.uniform(1.1, 2.0)
    return _on_and_off(
        seconds,
        chance,
        lambda: 1 + scale * chance.pareto(shape),
        lambda: 1 + scale * chance.pareto(shape),
    )


def _crowd(seconds: int, chance: np.random.Generator) -> Values:
    """Many small requests at once, whose rate rises and falls."""
    rate = np.exp(np.cumsum(chance.normal(0, 0.2, seconds)))
    rate *= chance.uniform(2, 20) / rate.mean()
    return np.minimum(100, chance.poisson(rate) * chance.uniform(2, 8)).repeat(_FINE)


def _etl(seconds: int, chance: np.random.Generator) -> Values:
    """Stages of different length and level, noisy, some of them ramps."""
    values: list[Values] = []
    while sum(map(len, values)) < seconds * _FINE:
        points = round(chance.uniform(5, seconds / 3)) * _FINE
        ends = chance.uniform(0, 100, 2) if chance.random() < 0.4 else [chance.uniform(0, 100)] * 2
        noise = chance.normal(0, chance.uniform(1, 12), points // _FINE).repeat(_FINE)
        values.append(np.linspace(*ends, points) + noise)
    return np.concatenate(values)[: seconds * _FINE]


def _idle(seconds: int, chance: np.random.Generator) -> Values:
    values = np.zeros(seconds)
    values[chance.random(seconds) < chance.uniform(0, 0.03)] = chance.uniform(1, 30)
    return values.repeat(_FINE)


def _constant(seconds: int, chance: np.random.Generator) -> Values:
    noise = chance.normal(0, chance.uniform(0, 10), seconds)
    return (chance.uniform(10, 98) + noise).repeat(_FINE)


def _red_noise(seconds: int, chance: np.random.Generator) -> Values:
    """Noise that remembers for some seconds: a first-order autoregression."""
    kept, values = chance.uniform(0.5, 0.97), np.zeros(seconds)
    for i in range(1, seconds):
        values[i] = kept * values[i - 1] + chance.normal(0, 8)
    return (50 + values).repeat(_FINE)


CYCLIC: Final[dict[str, Callable[[int, float, np.random.Generator], _Curve]]] = {
    "square": _square,
    "sawtooth": _sawtooth,
    "two steps": _two_steps,
    "drifting": _drifting,
    "noisy": _noisy,
    "with checkpoints": _with_checkpoints,
    "with evaluation": _with_evaluation,
    "started late": _started_late,
}
OTHERS: Final[dict[str, Callable[[int, np.random.Generator], Values]]] = {
    "random walk": _random_walk,
    "inference": _inference,
    "bursts": _bursts,
    "crowd": _crowd,
    "etl": _etl,
    "idle": _idle,
    "constant and noise": _constant,
    "red noise": _red_noise,
}
