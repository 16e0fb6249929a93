"""Why there is no room for pods that nobody has made yet, such as a training job's workers."""

import msgspec
from msgspec.structs import replace

from alnair.model.workload import Pod
from alnair.scheduler.engine.view import View
from alnair.scheduler.framework.evaluation import Evaluation
from alnair.scheduler.queue.unit import Unit
from alnair.scheduler.state.accounts import Record


class NoRoom(msgspec.Struct, frozen=True):
    """Why pods find no room.

    Attributes:
        words: The scheduler's; empty if there is room after all.
        never: No pod's leaving would help: not one of them would do on any node, however empty.
    """

    words: str = ""
    never: bool = False


def why_no_room(view: View, pod: Pod, count: int, now: float) -> NoRoom:
    """Return why so many pods find no room, tried one after the other on the scheduler's books.

    Args:
        view: Of the engine, whose books are as before then.
        pod: What each of them is like, of one of the engine's profiles.
        count: How many are needed.
        now: Seconds since the epoch.
    """
    if pod.problem:
        return NoRoom(pod.problem, never=True)
    with (
        view.experiment(now, [Record(pod)]) as experiment,
        experiment.attempt() as (statement, _),
    ):
        profile = experiment.profiles[pod.scheduler]
        for number in range(count):
            record = Record(replace(pod, uid=f"{pod.uid}?{number}", name=f"{pod.name}?{number}"))
            if held_back := experiment.admission.refuse([record]):
                return NoRoom(_after(number, count, held_back))
            allowed = experiment.admission.allowed(Unit(record.pod.uid), record, now)
            refused = statement.place(record, profile, allowed)
            if refused is not None:
                words = _after(number, count, experiment.admission.why(refused, allowed))
                return NoRoom(words, never=number == 0 and _helps_nobodys_leaving(refused))
    return NoRoom()


def _after(placed: int, count: int, words: str) -> str:
    return f"{placed} of {count} would fit, and then: {words}" if placed else words


def _helps_nobodys_leaving(refused: Evaluation) -> bool:
    if refused.refusal is not None:
        return True
    nodes, reasons = refused.refusals()
    return bool(nodes) and all(reason.unresolvable for _, reason, _ in reasons)
