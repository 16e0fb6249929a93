"""Which changes of a pod let it fit: single ones, or pairs where no single one does.

Each is verified by deciding again. A live scheduler waits meanwhile, so the work is bounded; the
order is fixed, so that the same books give the same answer.
"""

from collections.abc import Callable, Iterator
from typing import Final

import msgspec
import numpy as np

from alnair.model.workload import PodSpec
from alnair.scheduler.advice.diagnosis import Change, ChangePair
from alnair.scheduler.advice.refusals import accepting, relative_lack
from alnair.scheduler.advice.relaxations import Reduction, reductions, relaxations
from alnair.scheduler.advice.trial import Trial, Verdict
from alnair.scheduler.framework.extension_points import Profile
from alnair.scheduler.framework.relaxation import Relaxation
from alnair.scheduler.state.cluster import Cluster

#: Placements that looking for changes may cost. At 5,000 nodes one costs some 1 ms for a pod that
#: is tried alone, less for many that are alike.
_BUDGET: Final = 2000
_SHOWN: Final = 8
#: Pairs that are looked at, which costs less than a decision; decisions on them; and those shown.
_PAIRS: Final = 500
_PAIR_DECISIONS: Final = 300
_PAIRS_SHOWN: Final = 3
#: Steps in which two amounts are made smaller together.
_STEPS: Final = 64
_SHORTER: Final = 0.2


class _Option(msgspec.Struct, frozen=True):
    """A change that may be one of a pair: fixed, or a reduction, then shown at its least."""

    change: Relaxation
    reduction: Reduction | None = None

    @property
    def name(self) -> tuple[str, str]:
        """What tells it from the other changes of the same pod."""
        return self.change.kind, self.reduction.what if self.reduction else self.change.text

    @property
    def size(self) -> float:
        """How much is changed, as far as that is known before amounts are looked for."""
        return 0.0 if self.reduction else self.change.size


class _Candidate(msgspec.Struct, frozen=True):
    """A pair that nodes' filters let pass; it is at least so much of a change."""

    size: float
    first: _Option
    second: _Option


class ChangeSearch:
    """Looks for changes of one pod.

    Args:
        trial: of the pod and its gang.
        spec: of the pods that are changed.
        profile: theirs.
        cluster: its state.
        refusing: the plugins that refuse some node.

    Attributes:
        tried: single changes that were tried.
        all_tried: none was left out for the budget.
        pairs_tried, all_pairs_tried: the same of pairs.
    """

    def __init__(
        self, trial: Trial, spec: PodSpec, profile: Profile, cluster: Cluster, refusing: set[str]
    ) -> None:
        self._trial = trial
        self._spec = spec
        self._profile = profile
        self._cluster = cluster
        self._refusing = refusing
        #: Placements that may still be spent, and decisions on pairs.
        self._left = _BUDGET
        self._decisions = _PAIR_DECISIONS
        self.tried = 0
        self.all_tried = True
        self.pairs_tried = 0
        self.all_pairs_tried = True

    # --- single changes ---------------------------------------------------------------------------

    def singles(self, time_limit: int) -> list[Change]:
        """Return the single changes that help, the smallest first.

        Args:
            time_limit: seconds for which nodes are reserved that a shorter pod may use; 0 if none
                are.
        """
        helpful = [
            (relaxation, verdict)
            for relaxation in self._relaxations(self._spec)
            if (verdict := self._verify(relaxation))
        ]
        helpful += [best for r in reductions(self._spec) if (best := _largest(r, self._verify))]
        found = [(relaxation.size, _change(relaxation, verdict)) for relaxation, verdict in helpful]
        if (change := self._shorter(time_limit)) is not None:
            found.append((_SHORTER, change))
        found.sort(key=lambda each: (each[0], each[1].text))
        return [change for _, change in found[:_SHOWN]]

    def _relaxations(self, spec: PodSpec) -> Iterator[Relaxation]:
        return relaxations(spec, self._profile, self._cluster, self._refusing)

    def _verify(self, relaxation: Relaxation) -> Verdict | None:
        """Decide again with the change; returns the verdict if the pod fits then."""
        if self._left < self._trial.size:
            self.all_tried = False
            return None
        self._left -= self._trial.size
        self.tried += 1
        verdict = self._trial.verdict(self._spec, relaxation.spec)
        return verdict if verdict.fits else None

    def _shorter(self, limit: int) -> Change | None:
        """Return a time limit with which the pod may use nodes that are reserved."""
        if limit <= 0 or self._left < self._trial.size:
            return None
        self.tried += 1
        verdict = self._trial.verdict(self._spec, self._spec, limit)
        text = f"declare activeDeadlineSeconds: {limit} or less, to use reserved nodes until then"
        return Change("time-limit", text, verdict.node) if verdict.fits else None

    # --- pairs ------------------------------------------------------------------------------------

    def pairs(self) -> list[ChangePair]:
        """Return the smallest pairs of changes that help; to be asked if no single change does."""
        found: list[tuple[float, ChangePair]] = []
        for candidate in sorted(self._candidates(), key=_order):
            if len(found) > _PAIRS_SHOWN or not self._may_decide():
                break
            if each := self._best(candidate):
                found.append(each)
        found.sort(key=lambda each: (each[0], each[1].texts))
        return [pair for _, pair in found[:_PAIRS_SHOWN]]

    def _options(self, spec: PodSpec) -> Iterator[_Option]:
        for relaxation in self._relaxations(spec):
            yield _Option(relaxation)
        for reduction in reductions(spec):
            if reduction.least < reduction.asked:
                yield _Option(reduction.relaxation(reduction.least), reduction)

    def _candidates(self) -> Iterator[_Candidate]:
        """Return the pairs with which some node passes all filters, as the books are."""
        lacking = relative_lack(self._spec, self._cluster)
        firsts = list(self._options(self._spec))
        done = set()
        for first in firsts:
            done.add(first.name)
            # What the second one changes is what the first one left.
            for second in self._options(first.change.spec):
                if second.name in done:
                    continue
                if self.pairs_tried == _PAIRS:
                    self.all_pairs_tried = False
                    return
                self.pairs_tried += 1
                rows = accepting(second.change.spec, self._profile, self._cluster)
                if rows.any():
                    size = first.size + second.size
                    if first.reduction or second.reduction:
                        size += float(np.min(lacking[rows]))
                    yield _Candidate(size, first, second)

    def _may_decide(self) -> bool:
        if self._decisions and self._left >= self._trial.size:
            return True
        self.all_pairs_tried = False
        return False

    def _decide(self, spec: PodSpec) -> Verdict | None:
        if not self._may_decide():
            return None
        self._decisions -= 1
        self._left -= self._trial.size
        verdict = self._trial.verdict(self._spec, spec)
        return verdict if verdict.fits else None

    def _best(self, pair: _Candidate) -> tuple[float, ChangePair] | None:
        """Return the smallest form of a pair with which the pod fits, and its size."""
        first, second = pair.first, pair.second
        if first.reduction and second.reduction:
            return self._both(first.reduction, second.reduction)
        if not first.reduction and not second.reduction:
            verdict = self._decide(second.change.spec)
            return _pair(first.change, second.change, verdict) if verdict else None
        # A reduction comes after all relaxations, so it is the second one.
        assert second.reduction is not None
        best = _largest(second.reduction, lambda change: self._decide(change.spec))
        return _pair(first.change, *best) if best else None

    def _both(self, one: Reduction, two: Reduction) -> tuple[float, ChangePair] | None:
        """Make two amounts smaller by the same part, then each as large as the other allows."""

        def scaled(reduction: Reduction, step: int) -> int:
            return reduction.least + (reduction.asked - 1 - reduction.least) * step // _STEPS

        def after(amount: int) -> Reduction | None:
            left = one.spec(amount)
            return next((r for r in reductions(left) if r.what == two.what), None)

        low, high, step, fits = 0, _STEPS, 0, -1
        while low <= high:
            second = after(scaled(one, step))
            if second and self._decide(second.spec(scaled(two, step))):
                fits, low = step, step + 1
            elif fits < 0:
                return None
            else:
                high = step - 1
            step = (low + high) // 2
        amount = scaled(two, fits)

        def with_second(change: Relaxation) -> Verdict | None:
            second = next(r for r in reductions(change.spec) if r.what == two.what)
            return self._decide(second.spec(amount))

        first = _largest(one, with_second, scaled(one, fits))
        if first is None:
            return None
        second = next(r for r in reductions(first[0].spec) if r.what == two.what)
        best = _largest(second, lambda change: self._decide(change.spec), amount)
        return _pair(first[0], *best) if best else None


def _largest(
    reduction: Reduction,
    verify: Callable[[Relaxation], Verdict | None],
    least: int | None = None,
) -> tuple[Relaxation, Verdict] | None:
    """Return the largest smaller amount with which the pod fits, if there is one."""
    low, high = reduction.least if least is None else least, reduction.asked - 1
    best = None
    amount = low  # nothing helps if the least does not
    while low <= high:
        relaxation = reduction.relaxation(amount)
        verdict = verify(relaxation)
        if verdict:
            best, low = (relaxation, verdict), amount + 1
        elif best is None:
            return None
        else:
            high = amount - 1
        amount = (low + high) // 2
    return best


def _order(pair: _Candidate) -> tuple[float, str, str]:
    return pair.size, pair.first.change.text, pair.second.change.text


def _change(relaxation: Relaxation, verdict: Verdict) -> Change:
    return Change(relaxation.kind, _text(relaxation, verdict), verdict.node)


def _pair(first: Relaxation, second: Relaxation, verdict: Verdict) -> tuple[float, ChangePair]:
    kinds = (first.kind, second.kind)
    texts = (_text(first, verdict), _text(second, verdict))
    return first.size + second.size, ChangePair(kinds, texts, verdict.node)


def _text(relaxation: Relaxation, verdict: Verdict) -> str:
    return relaxation.text.replace("{node}", verdict.node)
