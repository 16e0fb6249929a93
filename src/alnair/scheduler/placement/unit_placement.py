"""Places pods of a unit as if it were their turn, by the rules of their gang and their quota."""

from collections.abc import Sequence

from alnair.scheduler.placement.admission import Admission
from alnair.scheduler.placement.context import EngineContext
from alnair.scheduler.placement.gang_placement import GangPlacement
from alnair.scheduler.placement.statement import Statement
from alnair.scheduler.state.accounts import Record
from alnair.scheduler.state.nodes.columns import Mask


def place_unit(
    context: EngineContext,
    admission: Admission,
    pods: Sequence[Record],
    count: int,
    now: float,
    allowed: Mask | None = None,
) -> Statement:
    """Try to place so many pods of a unit; decides nothing.

    Args:
        context: what to decide from.
        admission: what holds pods back besides their nodes.
        pods: of one unit, in their order.
        count: how many of them must be placed together.
        now: seconds since the epoch.
        allowed: rows that a lone pod may use; None for all. A gang asks for them itself.

    Returns:
        The statement, on which they come first; the caller rolls it back.
    """
    state = context.members.gang_of(pods[0])
    if state is not None:
        placement = GangPlacement(context, admission, state, pods, now)
        placement.place(count, {})
        return placement.statement
    statement = Statement(context.accounts, context.evaluations, now)
    if not admission.refuse(pods[:1]):
        statement.place(pods[0], context.profiles[pods[0].pod.scheduler], allowed)
    return statement
