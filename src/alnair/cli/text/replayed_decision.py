"""What was decided again on a pod of a snapshot, for people to read."""

from collections.abc import Iterator

from alnair.snapshots.replay import DecisionOutcome


def lines(outcome: DecisionOutcome) -> Iterator[str]:
    """Return the decision line by line."""
    if outcome.node:
        yield f"{outcome.pod}: {outcome.node}"
    else:
        yield f"{outcome.pod}: {'evicted: ' if outcome.evicted else ''}{outcome.message}"
    for node, score in outcome.best:
        yield f"  {node}: score {score}"
