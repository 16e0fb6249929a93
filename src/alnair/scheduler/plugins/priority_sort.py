"""PrioritySort: higher priority first, then the older pod."""

from alnair.model.workload import Pod


class PrioritySort:
    """Orders the queue."""

    name = "PrioritySort"

    def key(self, pod: Pod) -> tuple[float, ...]:
        """Return the sort key; smaller goes first."""
        return (-pod.priority, pod.created)
