"""Judges one case: which evaluator, and how the case counts."""

from collections.abc import Callable, Mapping
from typing import Final

from conformance.document import Case, Document
from conformance.kinds import filters, gang, placement, podrequest, preempt, score
from conformance.outcome import NotCoveredError, Outcome, Verdict
from conformance.plugins import modelled

#: Kind of a file → compares a case with what is decided here; it raises where they differ.
EVALUATORS: Final[Mapping[str, Callable[[str, Case], None]]] = {
    "filter": filters.check,
    "gang": gang.check,
    "placement": placement.check,
    "podrequest": podrequest.check,
    "preempt": preempt.check,
    "score": score.check,
}


def judge(document: Document, case: Case) -> Verdict:
    """Return what comes of the case; whatever goes wrong in it is a failure with its text."""
    if not case.default_gates:
        unknown = sorted(set(case.gates) - modelled(document.plugin))
        if unknown or not case.gates:
            gates = ", ".join(unknown) or "not named"
            return Verdict(Outcome.GATED, f"feature gates: {gates}")
    if document.kind == "gang" and not set(case.want).isdisjoint(gang.PERMIT):
        return Verdict(
            Outcome.COSCHEDULING_PERMIT, "gangs are decided whole: nothing waits in Permit"
        )
    try:
        evaluate = EVALUATORS.get(document.kind)
        if evaluate is None:
            raise NotCoveredError(f"kind {document.kind}")
        evaluate(document.plugin, case)
    except Exception as error:  # noqa: BLE001 - a case that breaks something has failed
        text = str(error) or type(error).__name__
        if not isinstance(error, NotCoveredError | AssertionError):
            text = f"{type(error).__name__}: {text}"
        return Verdict(Outcome.FAILED, text)
    return Verdict(Outcome.PASSED)
