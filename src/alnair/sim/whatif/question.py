"""Asks: makes the changes, lets the scheduler decide, looks ahead, and says what came of it."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

import msgspec

from alnair.scheduler.engine import events
from alnair.scheduler.framework.extension_points import Profile
from alnair.sim.whatif.answer import Answer
from alnair.sim.whatif.changes import Changes, check, make, submit
from alnair.sim.whatif.figures import figures, mix
from alnair.sim.whatif.lookahead import Lookahead
from alnair.sim.whatif.plans import Freeing, freed, moved
from alnair.sim.whatif.pod_results import PodResults
from alnair.sim.whatif.trainings import WorkersResult, sized, workers_now

#: Seconds that the scheduler gets to work off the changes: it backs off after preemptions.
SETTLE: Final = 60.0


def ask(
    known: Sequence[events.Event],
    profiles: Sequence[Profile],
    changes: Changes,
    *,
    now: float,
    horizon: float,
    seed: int = 0,
    freeing: Freeing | None = None,
    progress: Callable[[float], None] = lambda done: None,
) -> Answer:
    """Return what would happen.

    Args:
        known: all that exists in the cluster.
        profiles: of its scheduler, made for this question alone.
        changes: to be made.
        now: seconds since the epoch.
        horizon: seconds to look ahead.
        seed: of the scheduler's engine.
        freeing: GPUs to be freed, after the changes.
        progress: called with the seconds that have been looked ahead.

    Raises:
        ChangeError: a change cannot be made.
    """
    lookahead = Lookahead(known, profiles, now=now, seed=seed)
    check(changes, lookahead)
    workload = mix(pod.spec for pod in (*lookahead.api.pods.values(), *changes.pods))
    before = figures(lookahead.engine.view, workload)
    fates = PodResults(lookahead, horizon)
    left, staying = make(changes, lookahead)
    workers: list[WorkersResult] = []
    if changes.trainings:
        lookahead.settle()  # what waits already goes before
        view = lookahead.engine.view
        workers = workers_now(view, changes.trainings, changes.gangs, changes.pods, now)
        gangs, pods = sized(workers, changes.gangs, changes.pods)
        changes = msgspec.structs.replace(changes, gangs=gangs, pods=pods)
    submit(changes, lookahead)
    lookahead.run(now + SETTLE)
    after = figures(lookahead.engine.view, workload)
    fates.look([*changes.pods, *(one.pod for one in left)])
    plan = freed(lookahead.engine.view, freeing) if freeing else None
    then = moved(lookahead.engine.view, plan, workload) if plan and plan.moves else None

    def is_over() -> bool:
        progress(lookahead.now - now)
        return fates.all_placed()

    lookahead.run(now + max(horizon, SETTLE), is_over)
    return Answer(
        time=now,
        horizon=horizon,
        before=before,
        after=after,
        fates=tuple(fates.results(changes.pods, left)),
        staying=tuple(staying),
        plan=plan,
        moved=then,
        notes=tuple(_notes(lookahead)),
        workers=tuple(workers),
    )


def _notes(lookahead: Lookahead) -> Iterator[str]:
    if count := len(lookahead.overdue):
        yield f"{count} running pods have outlived their time limit: they are taken not to end"
