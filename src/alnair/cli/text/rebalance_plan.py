"""A plan of moves for people to read."""

from collections.abc import Iterator, Sequence
from typing import Final

from alnair.scheduler.advice.rebalance import RebalanceOutcome, Stay

#: Pods that are named of those that stay for the same reason.
_NAMED: Final = 5


def lines(outcome: RebalanceOutcome) -> Iterator[str]:
    """Return the plan, or why there is none, line by line."""
    yield from stays(outcome.staying)
    if outcome.problem:
        yield outcome.problem
        return
    nodes = ", ".join(outcome.nodes or (outcome.node,))
    if not outcome.moves:
        what = f"node {nodes} is" if len(outcome.nodes) < 2 else f"nodes {nodes} are"
        yield f"{what} free already: nothing needs to be moved"
        return
    rows = [("POD", "FROM", "TO")]
    rows += [
        (
            f"{m.namespace}/{m.name}",
            place(m.source, m.source_gpus),
            place(m.target, m.target_gpus),
        )
        for m in outcome.moves
    ]
    yield from table(rows)
    for m in outcome.moves:
        if not m.own:
            yield (
                f"{m.namespace}/{m.name} would go elsewhere by itself: cordon other nodes, or give "
                f"its template a node selector for {m.target}"
            )


def place(node: str, gpus: Sequence[int]) -> str:
    """Return a node and the indices of GPUs on it, as `gpu-1 GPUs 0-3,6`."""
    if not gpus:
        return node
    spans: list[list[int]] = []
    for index in gpus:
        if spans and index == spans[-1][1] + 1:
            spans[-1][1] = index
        else:
            spans.append([index, index])
    shown = ",".join(str(a) if a == b else f"{a}-{b}" for a, b in spans)
    return f"{node} GPU{'s' if len(gpus) > 1 else ''} {shown}"


def stays(staying: Sequence[Stay]) -> Iterator[str]:
    """Return why pods stay, with some of their names for each reason."""
    reasons: dict[str, list[str]] = {}
    for one in staying:
        reasons.setdefault(one.why, []).append(f"{one.namespace}/{one.name}")
    for why, pods in reasons.items():
        more = f" and {len(pods) - _NAMED} more" if len(pods) > _NAMED else ""
        verb = "stays" if len(pods) == 1 else "stay"
        yield f"{', '.join(pods[:_NAMED])}{more} {verb}: {why}"


def table(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Return rows of cells as lines with columns."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        cells = (cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        yield "  ".join(cells).rstrip()
