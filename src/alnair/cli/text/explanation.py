"""A diagnosis for people to read."""

import datetime as dt
from collections.abc import Iterator
from typing import Final

from alnair.scheduler.advice.diagnosis import Diagnosis, GangStory, Predicate, QueueStory

_PLACES: Final = {
    "active": "to be tried when its turn comes",
    "backoff": "backs off after a failure",
    "unschedulable": "waits for a change of the cluster",
}
_MIB: Final = 1024 * 1024


def render(told: Diagnosis) -> str:
    """Return the diagnosis as lines."""
    return "\n".join(_lines(told))


def _lines(told: Diagnosis) -> Iterator[str]:
    for note in told.notes:
        yield f"note: {note}"
    yield f"pod {told.pod} ({told.scheduler}): {_stage(told)}"
    if told.message:
        yield f"  {told.message}"
    if told.waits_for:
        yield f"  It waits for {'; and '.join(told.waits_for)}."
    if told.gang:
        yield from ("", *_gang(told.gang))
    if told.queue:
        yield from ("", _queue(told.queue))
    if told.preemption:
        yield from ("", f"preemption: {told.preemption}")
    if _only_lacks_pods(told):
        return  # all that exist would fit: no node refuses them, and no change of them helps
    if told.predicates:
        yield from ("", *_predicates(told.predicates))
    if told.closest:
        yield from ("", "closest nodes:")
        for node in told.closest:
            missing = ", ".join(f"{_amount(r, n)} of {r}" for r, n in node.missing.items())
            lacks = f" (missing: {missing})" if missing else ""
            yield f"  {node.node}: {'; '.join(node.reasons) or 'its GPUs'}{lacks}"
    if told.stage == "waiting" and not told.fits:
        yield from ("", *_changes(told))


def _stage(told: Diagnosis) -> str:
    since = ""
    if told.since:
        moment = dt.datetime.fromtimestamp(told.since, dt.UTC)
        since = f" since {moment:%Y-%m-%dT%H:%M:%SZ}"
    match told.stage:
        case "bound":
            return f"it is bound to {told.node}{since}; nothing is to be explained"
        case "binding":
            return f"it is being bound to {told.node}{since}"
        case "finished":
            return "it has ended"
        case "waiting" if _only_lacks_pods(told):
            return "its gang is not complete"
        case "waiting":
            return f"fits none of {told.nodes} nodes" if not told.fits else "fits"
    return told.stage


def _only_lacks_pods(told: Diagnosis) -> bool:
    """Return whether the pod waits for nothing but pods of its gang that do not exist."""
    gang = told.gang
    return gang is not None and gang.exists and gang.pods < gang.min_member and not gang.blocked


def _gang(gang: GangStory) -> Iterator[str]:
    if not gang.exists:
        yield f"gang {gang.name}: its PodGroup does not exist; {gang.pods} pods name it"
        return
    yield (
        f"gang {gang.name}: {gang.placed} of {gang.min_member} pods run or are on their way, "
        f"{gang.pods} exist"
    )
    if gang.lacking:
        first = f"; the first that does not is {gang.blocked}" if gang.blocked else ""
        yield f"  {gang.fit} of the {gang.lacking} that must start together fit now{first}"


def _queue(queue: QueueStory) -> str:
    tries = f", tried {queue.attempts} times" if queue.attempts else ""
    what = _PLACES[queue.place]
    return f"queue: {queue.position} of {queue.length} by priority and age, {what}{tries}"


def _predicates(found: tuple[Predicate, ...]) -> Iterator[str]:
    rows = [("refused by", "nodes", "only this", "reason")]
    rows += [(p.plugin, str(p.nodes), str(p.only), p.reason) for p in found]
    widths = [max(len(row[i]) for row in rows) for i in range(3)]
    for plugin, nodes, only, reason in rows:
        yield f"{plugin:<{widths[0]}}  {nodes:>{widths[1]}}  {only:>{widths[2]}}  {reason}"


def _changes(told: Diagnosis) -> Iterator[str]:
    skipped = "" if told.all_tried else "; more were not tried, to stay quick"
    if not told.changes:
        yield f"no single change of the pod helps ({told.tried} were tried{skipped})"
        return
    yield f"each of these alone lets it fit (decided again with each{skipped}):"
    for number, change in enumerate(told.changes, 1):
        yield f"  {number}. {change.text} (to {change.node})"


def _amount(resource: str, amount: int) -> str:
    if resource == "cpu":
        return f"{amount}m"
    if resource in ("memory", "ephemeral-storage"):
        return f"{-(-amount // _MIB)}Mi"
    return str(amount)
