"""How long a disruption budget may hold up an eviction: what the API server is asked, and when."""

from typing import Final

from alnair.model.action import PREEMPTED
from alnair.scheduler.engine.evictions import CROSSED

#: Of the 5 s within which a node is relieved that was promised twice (docs: sharing-nodes.md), a
#: budget may take so much (seconds); the rest is for the deletion.
CROSSED_SECONDS: Final = 3.0


def budget_seconds(reason: str) -> float | None:
    """Return for how many seconds a budget is respected; None: for as long as it refuses.

    Preemption counted the budgets when it chose, and as in kube-scheduler they do not bind it. A
    node that was promised twice has not more room for a budget's sake. Nothing else is so urgent:
    a gang left in part, say, waits.
    """
    return {PREEMPTED: 0.0, CROSSED: CROSSED_SECONDS}.get(reason)
