"""The answer to a what-if question for people to read."""

from collections.abc import Iterator
from typing import Final

from alnair.cli.text import rebalance_plan
from alnair.cli.text.rebalance_plan import place, table
from alnair.model.durations import span
from alnair.model.plurals import counted
from alnair.sim.whatif.answer import Answer, PodResult
from alnair.sim.whatif.figures import Figures
from alnair.sim.whatif.trainings import WorkersResult

#: Pods that are listed one by one for each reason to be in the answer; `--json` has them all.
_LISTED: Final = 40
#: Nodes of a job's workers that are named.
_NODES: Final = 8
#: Changes that would help, shown for each pod that does not fit.
_CHANGES: Final = 3
_HEADS: Final = {
    "submitted": "submitted",
    "drained": "drained",
    "removed": "on removed nodes",
    "evicted": "evicted to make room",
    "waiting": "waited before and start",
}


def lines(answer: Answer) -> Iterator[str]:
    """Return the answer line by line."""
    for note in answer.notes:
        yield f"note: {note}"
    for one in answer.workers:
        yield from _workers(one)
    if answer.workers:
        yield ""
    for role, head in _HEADS.items():
        fates = [fate for fate in answer.fates if fate.role == role]
        if fates:
            yield from _fates(head, fates)
            yield ""
    if answer.staying:
        yield f"the drain leaves {_pods(len(answer.staying))} behind:"
        yield from (f"  {one.pod} on {one.node}: {one.why}" for one in answer.staying)
        yield ""
    if answer.plan is not None:
        yield from rebalance_plan.lines(answer.plan)
        if answer.moved is not None:
            nodes = ", ".join(answer.plan.nodes)
            yield f"then free: {nodes}"
        yield ""
    yield from _figures(answer)


def _workers(one: WorkersResult) -> Iterator[str]:
    asked = f"{one.least}" if one.least == one.most else f"{one.least} to {one.most}"
    if one.start:
        where = ", ".join(f"{node} ({count})" for node, count in one.nodes[:_NODES])
        more = f" and {len(one.nodes) - _NODES} more" if len(one.nodes) > _NODES else ""
        workers = counted(one.start, "worker")
        yield f"{one.kind} {one.job} would start with {workers} of {asked}: {where}{more}"
    else:
        yield f"{one.kind} {one.job} would wait: it needs at least {one.least} of {asked} workers"
    if one.why:
        yield f"  no more, as {one.why}"


def _fates(head: str, fates: list[PodResult]) -> Iterator[str]:
    placed = [fate for fate in fates if fate.node]
    at_once = sum(fate.now for fate in placed)
    later = len(placed) - at_once
    counts = [f"{at_once} at once"]
    if later:
        counts.append(f"{later} later")
    if left := len(fates) - len(placed):
        counts.append(f"{left} not placed")
    yield f"{head}: {_pods(len(fates))}, {', '.join(counts)}"
    rows = [("POD", "FROM", "TO", "WHEN")]
    for fate in fates[:_LISTED]:
        target = place(fate.node, fate.gpus) if fate.node else "-"
        rows.append((fate.pod, fate.source, target, _when(fate)))
    is_new = not any(fate.source for fate in fates)
    cells = [(row[0], *row[2:]) if is_new else row for row in rows]
    yield from (f"  {line}" for line in table(cells))
    if len(fates) > _LISTED:
        yield f"  … and {len(fates) - _LISTED} more: --json has them all"
    yield from _reasons(fates)


def _pods(count: int) -> str:
    return counted(count, "pod")


def _when(fate: PodResult) -> str:
    if fate.after is None:
        return "lost" if "lost" in fate.note else "never"
    return "at once" if fate.now else f"in {span(fate.after)}"


def _reasons(fates: list[PodResult]) -> Iterator[str]:
    """Say why pods wait, are evicted or lost: once for each reason, with the first pod's name."""
    said: set[tuple[str, str]] = set()
    for fate in fates:
        if not (fate.why or fate.note) or (fate.why, fate.note) in said:
            continue
        said.add((fate.why, fate.note))
        same = sum((f.why, f.note) == (fate.why, fate.note) for f in fates)
        more = f" and {same - 1} more" if same > 1 else ""
        yield f"  {fate.pod}{more}:"
        for text in filter(None, (fate.why, fate.note)):
            yield f"    {text}"
        helpful = [(change.text, change.node) for change in fate.changes]
        helpful += [(pair.text, pair.node) for pair in fate.pairs]
        for text, node in helpful[:_CHANGES]:
            yield f"    it would fit at once: {text} (to {node})"


def _figures(answer: Answer) -> Iterator[str]:
    columns = [("BEFORE", answer.before), ("AFTER", answer.after)]
    if answer.moved is not None:
        columns.append(("MOVED", answer.moved))
    rows = [["", *(head for head, _ in columns)]]
    each = answer.after.gang_gpus
    names = [
        "nodes that take pods",
        "GPUs",
        "GPUs allocated",
        "free whole GPUs",
        f"largest gang of {each}-GPU pods",
        "stranded GPUs (F)",
        "pods running",
        "pods waiting",
    ]
    cells = [_cells(figures) for _, figures in columns]
    rows += [[name, *(column[i] for column in cells)] for i, name in enumerate(names)]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    for row in rows:
        yield "  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])])


def _cells(figures: Figures) -> list[str]:
    part = f"{figures.allocated / figures.gpus:.1%}" if figures.gpus else "-"
    return [
        str(figures.nodes),
        str(figures.gpus),
        f"{figures.allocated:g} ({part})",
        str(figures.whole_free),
        str(figures.largest_gang),
        f"{figures.fragmentation:.2f}",
        str(figures.running),
        str(figures.waiting),
    ]
