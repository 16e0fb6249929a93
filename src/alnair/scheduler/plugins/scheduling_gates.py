"""SchedulingGates: a gated pod is not considered."""

from alnair.model.workload import Pod


class SchedulingGates:
    """Holds gated pods back."""

    name = "SchedulingGates"

    def pre_enqueue(self, pod: Pod) -> str:
        """Return why the pod must wait, or an empty text."""
        return "waiting for scheduling gates to be removed" if pod.gated else ""
