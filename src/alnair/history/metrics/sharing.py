"""Jobs that share a GPU: how fast they ran beside one another."""

from alnair.history.history import History
from alnair.history.metrics.result import Pair, Sharing


def sharing(history: History) -> Sharing:
    """Return how fast co-located jobs ran, as parts of their speeds alone, by their kinds.

    The normalised throughput of a pair is the sum of both; source: Narayanan et al., *Gavel*,
    OSDI'20, section 3.1.
    """
    sums: dict[tuple[str, str], list[float]] = {}
    rates = []
    for pair in history.pairs:
        kinds = [
            (history.jobs[name].kind if name in history.jobs else "", rate)
            for name, rate in ((pair.first, pair.first_rate), (pair.second, pair.second_rate))
        ]
        (first, one), (second, two) = sorted(kinds)
        row = sums.setdefault((first, second), [0.0, 0.0, 0.0])
        for column, amount in enumerate((1.0, one, two)):
            row[column] += amount * pair.seconds
        rates += [one, two]
    pairs = [
        Pair(*kinds, seconds, one / seconds, two / seconds, (one + two) / seconds)
        for kinds, (seconds, one, two) in sums.items()
        if seconds > 0
    ]
    pairs.sort(key=lambda pair: (-pair.seconds, pair.first, pair.second))
    seconds = sum(pair.seconds for pair in pairs)
    throughput = sum(pair.throughput * pair.seconds for pair in pairs)
    return Sharing(
        seconds,
        throughput / seconds if seconds else None,
        throughput / seconds / 2 if seconds else None,
        min(rates, default=None),
        pairs,
    )
