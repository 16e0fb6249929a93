"""Why a pod is pending, in kube-scheduler's words where it has any."""

from collections import Counter

from alnair.scheduler.framework.evaluation import Evaluation


def refusal_message(evaluation: Evaluation) -> str:
    """Return one sentence: how many nodes there are, and how many each reason refused."""
    if evaluation.refusal is not None:
        return evaluation.refusal.text
    nodes, refusals = evaluation.refusals()
    if not nodes:
        return "no nodes available to schedule pods"
    counts: Counter[str] = Counter()
    for _, reason, count in refusals:
        counts[reason.text] += count
    reasons = ", ".join(sorted(f"{count} {text}" for text, count in counts.items()))
    return f"0/{nodes} nodes are available: {reasons}."
