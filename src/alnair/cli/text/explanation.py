"""A diagnosis for people to read."""

import datetime as dt
from collections.abc import Iterator
from typing import Final

from alnair.model.plurals import counted
from alnair.scheduler.advice.diagnosis import (
    Diagnosis,
    GangDiagnosis,
    Placement,
    Predicate,
    QueueDiagnosis,
    UnmetLabel,
    UnservedName,
)

_PLACES: Final = {
    "active": "to be tried when its turn comes",
    "backoff": "backs off after a failure",
    "unschedulable": "waits for a change of the cluster",
}
_MIB: Final = 1024 * 1024


def render(diagnosis: Diagnosis) -> str:
    """Return the diagnosis as lines."""
    return "\n".join(_lines(diagnosis))


def _lines(diagnosis: Diagnosis) -> Iterator[str]:
    for note in diagnosis.notes:
        yield f"note: {note}"
    yield f"pod {diagnosis.pod} ({diagnosis.scheduler}): {_stage(diagnosis)}"
    if diagnosis.message:
        yield f"  {diagnosis.message}"
    if diagnosis.waits_for:
        yield f"  It waits for {'; and '.join(diagnosis.waits_for)}."
    if diagnosis.unserved:
        yield from ("", *_unserved(diagnosis.scheduler, diagnosis.unserved))
    if diagnosis.placement:
        yield from _placement(diagnosis.node, diagnosis.placement)
    if diagnosis.gang:
        yield from ("", *_gang(diagnosis.gang))
    if diagnosis.queue:
        yield from ("", _queue(diagnosis.queue))
    if diagnosis.preemption:
        yield from ("", f"preemption: {diagnosis.preemption}")
    if _only_lacks_pods(diagnosis):
        return  # all that exist would fit: no node refuses them, and no change of them helps
    yield from _nodes(diagnosis)
    if diagnosis.gang and not diagnosis.gang.exists:
        return  # no change was tried, and another label would help
    if diagnosis.stage in ("waiting", "unserved") and not diagnosis.fits:
        yield from ("", *_changes(diagnosis))


def _nodes(diagnosis: Diagnosis) -> Iterator[str]:
    """Say what refuses the pod where, which nodes are close, and what none has."""
    if diagnosis.predicates:
        yield from ("", *_predicates(diagnosis.predicates))
    refusing = [node for node in diagnosis.closest if node.reasons or node.missing]
    if refusing:
        yield from ("", "closest nodes:")
        for node in refusing:
            missing = ", ".join(f"{_amount(r, n)} of {r}" for r, n in node.missing.items())
            lacks = f" (missing: {missing})" if missing else ""
            yield f"  {node.node}: {'; '.join(node.reasons)}{lacks}"
    elif diagnosis.closest:  # as where its quota is used up
        yield from ("", "no node refuses it by itself")
    if diagnosis.unmet:
        yield from ("", "no node has what it requires:", *map(_unmet, diagnosis.unmet))


def _stage(diagnosis: Diagnosis) -> str:
    since = ""
    if diagnosis.since:
        moment = dt.datetime.fromtimestamp(diagnosis.since, dt.UTC)
        since = f" since {moment:%Y-%m-%dT%H:%M:%SZ}"
    match diagnosis.stage:
        case "bound":
            nothing = "" if diagnosis.placement else "; nothing is to be explained"
            return f"it is bound to {diagnosis.node}{since}{nothing}"
        case "binding":
            return f"it is being bound to {diagnosis.node}{since}"
        case "unserved":
            return "no scheduler of Alnair serves its scheduler name"
        case "finished":
            return "it has ended"
        case "waiting" if _only_lacks_pods(diagnosis):
            return "its gang is not complete"
        case "waiting":
            return (
                f"fits none of {counted(diagnosis.nodes, 'node')}" if not diagnosis.fits else "fits"
            )
    return diagnosis.stage


def _only_lacks_pods(diagnosis: Diagnosis) -> bool:
    """Return whether the pod waits for nothing but pods of its gang that do not exist."""
    gang = diagnosis.gang
    return gang is not None and gang.exists and gang.pods < gang.min_member and not gang.blocked


def _unserved(name: str, found: UnservedName) -> Iterator[str]:
    if found.near:
        yield f"did you mean {' or '.join(found.near)}?"
    who = "the scheduler that leads serves"
    if found.source == "built-in":
        who = "no scheduler says what it serves; the built-in profiles are"
    yield f"{who} {', '.join(found.served)}"
    yield found.elsewhere or f"nothing is seen here of another scheduler named {name}"


def _placement(node: str, got: Placement) -> Iterator[str]:
    guess = " (the pod does not say which: this is what the scheduler takes it to have)"
    for number, gpu in enumerate(got.gpus):
        part = "whole" if gpu.whole else f"a slice of {gpu.memory_mib} MiB and {gpu.compute} %"
        what = ", ".join(filter(None, (gpu.model, gpu.uuid)))
        yield f"  GPU {gpu.index} ({what}): {part}{guess if got.guessed and not number else ''}"
        if gpu.beside:
            yield f"    {gpu.beside}"
    if not got.decided_again:
        return
    yield ""
    yield "if it were decided on now, without it on the books (not as it was when it was placed):"
    if got.score is None:
        yield f"  {node} would not take it: {'; '.join(got.why_not)}"
    else:
        place = "the best" if not got.better else f"number {got.better + 1}"
        of = f"of the {counted(got.fitting, 'node')} that would take it"
        yield f"  {node} is {place} {of}, score {got.score}"
    if got.next is None:
        yield "  no other node would take it"
    elif got.score is None or got.better:
        yield f"  it would go to {got.next.node}, score {got.next.score}"
    else:
        same = ": the order of ties decides" if got.next.score == got.score else ""
        yield f"  the next best is {got.next.node}, score {got.next.score}{same}"


def _gang(gang: GangDiagnosis) -> Iterator[str]:
    if not gang.exists:
        pods = f"{counted(gang.pods, 'pod')} {'names' if gang.pods == 1 else 'name'} it"
        yield f"gang {gang.name}: its PodGroup does not exist; {pods}"
        return
    yield (
        f"gang {gang.name}: {gang.placed} of {gang.min_member} pods run or are on their way, "
        f"{gang.pods} exist"
    )
    if gang.lacking:
        first = f"; the first that does not is {gang.blocked}" if gang.blocked else ""
        yield f"  {gang.fit} of the {gang.lacking} that must start together fit now{first}"


def _queue(queue: QueueDiagnosis) -> str:
    tries = f", tried {counted(queue.attempts, 'time')}" if queue.attempts else ""
    what = _PLACES[queue.place]
    return f"queue: {queue.position} of {queue.length} by priority and age, {what}{tries}"


def _predicates(found: tuple[Predicate, ...]) -> Iterator[str]:
    rows = [("refused by", "nodes", "only this", "reason")]
    rows += [(p.plugin, str(p.nodes), str(p.only), p.reason) for p in found]
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    for plugin, nodes, only, reason in rows:
        yield f"{plugin:<{widths[0]}}  {nodes:>{widths[1]}}  {only:>{widths[2]}}  {reason}"


def _unmet(label: UnmetLabel) -> str:
    values = ", ".join(label.asked)
    asked = f"{label.key} {label.operator} {values}".rstrip()
    if label.operator == "In" and len(label.asked) == 1:
        asked = f"{label.key}={values}"
    if label.values:
        there = ", ".join(f"{each.value} ({each.nodes})" for each in label.values)
        more = f" and {label.more} more" if label.more else ""
        return f"  {label.field}: {asked}; there are {there}{more}"
    near = f"; did you mean {' or '.join(label.keys)}?" if label.keys else ""
    return f"  {label.field}: {asked}; no node has {label.key}{near}"


def _changes(diagnosis: Diagnosis) -> Iterator[str]:
    skipped = "" if diagnosis.all_tried else "; more were not tried, to stay quick"
    if diagnosis.changes:
        which = "each of these alone"
        if diagnosis.unserved and diagnosis.changes[0].kind != "scheduler-name":
            which = "with another scheduler name, each of these"
        yield f"{which} lets it fit (decided again with each{skipped}):"
        for number, change in enumerate(diagnosis.changes, 1):
            yield f"  {number}. {change.text} (to {change.node})"
        return
    none = f"no single change of the pod helps ({diagnosis.tried} tried{skipped})"
    skipped = "" if diagnosis.all_pairs_tried else "; more were not tried, to stay quick"
    if diagnosis.pairs:
        yield f"{none}, but two together do (decided again with both{skipped}):"
        for number, pair in enumerate(diagnosis.pairs, 1):
            yield f"  {number}. {pair.text} (to {pair.node})"
    elif diagnosis.pairs_tried or skipped:
        yield f"{none}, and no two together ({diagnosis.pairs_tried} looked at{skipped})"
    else:
        yield none


def _amount(resource: str, amount: int) -> str:
    if resource == "cpu":
        return f"{amount}m"
    if resource in ("memory", "ephemeral-storage"):
        return f"{-(-amount // _MIB)}Mi"
    return str(amount)
