"""What became of the pods that a question is about, and why."""

from collections.abc import Iterable, Iterator
from typing import Final

import msgspec
from msgspec.structs import replace

from alnair.model.durations import span
from alnair.model.workload import Pod, PodGpuAssignment
from alnair.scheduler.advice.diagnose import diagnose
from alnair.scheduler.advice.diagnosis import Change, ChangePair
from alnair.scheduler.advice.unserved import instead
from alnair.sim.whatif.answer import PodResult, Role
from alnair.sim.whatif.changes import Left
from alnair.sim.whatif.lookahead import Lookahead

#: Kinds of pods whose possible changes are looked for; each costs up to some seconds.
_DIAGNOSED: Final = 8


class _Why(msgspec.Struct, frozen=True):
    """Why a pod did not fit at once, and with which changes it would."""

    message: str
    changes: tuple[Change, ...] = ()
    pairs: tuple[ChangePair, ...] = ()


class PodResults:
    """Follows the pods of a question.

    Args:
        lookahead: before the changes are made.
        horizon: seconds that it will be looked ahead.
    """

    def __init__(self, lookahead: Lookahead, horizon: float) -> None:
        self._lookahead = lookahead
        self._begin = lookahead.now
        self._horizon = horizon
        records = lookahead.engine.view.pods
        self._waiting = [p for p in lookahead.api.pods.values() if not p.node and p.uid in records]
        self._why: dict[str, _Why] = {}
        self._settled: set[str] = set()
        self._limited = 0
        #: Uids of those that wait now; one that is evicted once more does not count any longer.
        self._open: set[str] = set()
        #: Uids of the pods whose results were yielded.
        self._seen: set[str] = set()

    def look(self, pods: Iterable[Pod]) -> None:
        """Note what is placed now, and why those of the pods (or their replacements) are not."""
        lookahead = self._lookahead
        self._settled = set(lookahead.placed)
        self._limited = lookahead.limited
        kinds: dict[object, _Why] = {}
        evicted = [pod for pod, _ in lookahead.evicted.values()]
        for pod in (*pods, *evicted):
            uid = lookahead.chain(pod.uid)[-1]
            record = lookahead.engine.view.pods.get(uid)
            if record is None or uid in lookahead.placed:
                continue
            self._open.add(uid)
            kind = (pod.namespace, pod.group) if pod.group else record.key
            if kind not in kinds:
                if len(kinds) >= _DIAGNOSED:
                    continue
                diagnosis = diagnose(lookahead.engine.view, record, lookahead.now)
                kinds[kind] = _Why(diagnosis.message, diagnosis.changes, diagnosis.pairs)
            self._why[uid] = kinds[kind]

    def all_placed(self) -> bool:
        """Return whether all pods have a node that did not have one when they were looked at."""
        return self._open.issubset(self._lookahead.placed)

    def results(self, submitted: Iterable[Pod], left: Iterable[Left]) -> Iterator[PodResult]:
        """Return what became of the submitted pods, those that left, and whoever else was moved."""
        for pod in submitted:
            self._is_new(pod)
            yield self._fate(pod, "submitted", self._whose(pod))
        for one in left:
            self._is_new(one.pod)
            yield self._fate(one.pod, one.how, self._note(one.pod))
        for pod, why in self._lookahead.evicted.values():
            if self._is_new(pod):
                note = "" if pod.owned else "no controller replaces it: it is lost"
                yield replace(self._fate(pod, "evicted", note), why=why)
        for pod in self._waiting:
            if self._is_new(pod) and self._lookahead.chain(pod.uid)[-1] in self._lookahead.placed:
                yield self._fate(pod, "waiting")

    def _is_new(self, pod: Pod) -> bool:
        chain = self._lookahead.chain(pod.uid)
        is_new = self._seen.isdisjoint(chain)
        self._seen.update(chain)
        return is_new

    def _note(self, pod: Pod) -> str:
        if not pod.owned:
            return "no controller replaces it: it is lost"
        if whose := self._whose(pod):
            return whose
        return f"gang {pod.group} is without it meanwhile" if pod.group else ""

    def _whose(self, pod: Pod) -> str:
        profiles = self._lookahead.engine.view.profiles
        if pod.scheduler in profiles:
            return ""
        return instead(pod.scheduler, profiles, self._lookahead.ours(pod).scheduler)

    def _fate(self, pod: Pod, role: Role, note: str = "") -> PodResult:
        lookahead = self._lookahead
        uid = lookahead.chain(pod.uid)[-1]
        fate = PodResult(f"{pod.namespace}/{pod.name}", role, pod.group, pod.node, note=note)
        reason = self._why.get(uid) or _Why(lookahead.messages.get(uid, ""))
        got = lookahead.placed.get(uid)
        if got is not None:
            at_once = uid in self._settled
            return replace(
                fate,
                node=got.node,
                gpus=indices(got.assignment),
                after=round(got.time - self._begin, 3),
                now=at_once,
                why="" if at_once else reason.message,
                changes=() if at_once else reason.changes,
                pairs=() if at_once else reason.pairs,
            )
        if uid in lookahead.api.pods:
            note = "; ".join(filter(None, (note, self._never())))
        return replace(
            fate, why=reason.message, changes=reason.changes, pairs=reason.pairs, note=note
        )

    def _never(self) -> str:
        within = f"not within {span(self._horizon)}"
        if not self._limited:
            return f"{within}: no running pod has a time limit"
        return f"{within}, by the time limits of {self._limited} running pods"


def indices(assignment: PodGpuAssignment) -> tuple[int, ...]:
    """Return the indices of the GPUs that a pod has."""
    return tuple(sorted({share.index for _, shares in assignment for share in shares}))
