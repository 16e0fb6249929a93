"""What rebalancing counts, as metrics of the controller."""

from collections import Counter
from collections.abc import Iterator

from prometheus_client.metrics_core import Metric

from alnair.model.rebalancing import PlannedMove, RebalancePlan
from alnair.scheduler.metric_counters import Histogram
from alnair.serving.exposition import counter, gauge, histogram


class RebalanceFigures:
    """Counts of one process.

    Attributes:
        seconds: How long rounds took that read the cluster.
        rounds: By result: plan, or why none; `nobody-waits` costs one request.
        last: When the last round was, seconds since the epoch; 0 before the first.
    """

    def __init__(self) -> None:
        self.seconds = Histogram((0.1, 0.3, 1.0, 3.0, 10.0, 30.0))
        self.rounds: Counter[str] = Counter()
        self.last = 0.0
        self._moves: Counter[tuple[str, str]] = Counter()
        self._gpus: Counter[str] = Counter()

    def moved(self, move: PlannedMove) -> None:
        """Count a move that is over."""
        self._moves["migration" if move.job else "eviction", move.stage] += 1

    def ended(self, plan: RebalancePlan, *, broken: bool = False) -> None:
        """Count a plan that is over."""
        self._gpus["broken" if broken else "freed"] += plan.gpus

    def metrics(self, under_way: int | None) -> Iterator[Metric]:
        """Return all families.

        Args:
            under_way: Moves; None if this process does not lead.
        """
        yield counter(
            "alnair_rebalancing_rounds_total",
            "Looks for pods to move, by what was found; several who wait may be declined in one.",
            [({"result": result}, count) for result, count in sorted(self.rounds.items())],
        )
        yield counter(
            "alnair_rebalancing_moves_total",
            "Pods that were moved, or not, by the way and by what became of it.",
            [({"by": by, "result": end}, n) for (by, end), n in sorted(self._moves.items())],
        )
        yield counter(
            "alnair_rebalancing_gpus_total",
            "Whole GPUs for those who waited, of plans that were carried out or broken off.",
            [({"result": result}, count) for result, count in sorted(self._gpus.items())],
        )
        yield histogram(
            "alnair_rebalancing_round_duration_seconds",
            "How long a look took that read the cluster.",
            [({}, self.seconds)],
        )
        if self.last:
            yield gauge(
                "alnair_rebalancing_last_round_timestamp_seconds",
                "When the last look was.",
                [({}, self.last)],
            )
        if under_way is not None:
            yield gauge(
                "alnair_rebalancing_moves_under_way", "Moves that have begun.", [({}, under_way)]
            )
