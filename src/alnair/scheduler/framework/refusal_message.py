"""Why a pod is pending, in kube-scheduler's words where it has any."""

from collections import Counter

from alnair.scheduler.framework.evaluation import Evaluation


def refusal_message(evaluation: Evaluation) -> str:
    """Return how many nodes there are, how many each reason refused, and what is mistyped."""
    if evaluation.refusal is not None:
        return evaluation.refusal.text
    nodes, refusals = evaluation.refusals()
    if not nodes:
        return "no nodes available to schedule pods"
    counts: Counter[str] = Counter()
    for _, reason, count in refusals:
        counts[reason.text] += count
    reasons = ", ".join(sorted(f"{count} {text}" for text, count in counts.items()))
    hints = (f" No node has {name}: is {meant} meant?" for name, meant in evaluation.mistyped())
    return f"0/{nodes} nodes are available: {reasons}.{''.join(hints)}"
