"""What people are told of moves."""

from alnair.model import durations
from alnair.model.plurals import counted
from alnair.model.rebalancing import PlannedMove, RebalancePlan


def planned(plan: RebalancePlan) -> str:
    """Return what a plan does, and for whom."""
    moves = f"{counted(len(plan.moves), 'pod')} move{'' if len(plan.moves) > 1 else 's'}"
    return f"{moves}, {_so_that(plan)}"


def begun(plan: RebalancePlan, move: PlannedMove) -> str:
    """Return why a pod leaves its node, how, and where to."""
    how = f"{move.job} leaves it with all its workers there" if move.job else "it is evicted"
    return f"off {move.source}, {_so_that(plan)}: {how}, and {move.target} has room for it"


def failed(move: PlannedMove, seconds: float) -> str:
    """Return what became of a move that failed so long after it began."""
    waited = durations.span(seconds)
    if seconds < 1:
        said = f"it may not leave {move.source} any more, and stays"
    elif move.job:
        said = f"{move.job} has not left {move.source} in {waited}, and stays"
    elif move.stage == "refused":
        said = f"it could not be evicted from {move.source} in {waited}, and stays"
    else:
        said = f"it left {move.source}, and in {waited} nothing came to work in its place"
    return f"{said}; further moves are given up"


def _so_that(plan: RebalancePlan) -> str:
    return f"so that {plan.name} gets {plan.gets} on {', '.join(plan.nodes)}"
