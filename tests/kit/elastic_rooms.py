"""Rooms for elastic plans: nodes with free GPUs, on which workers are placed one by one."""

from collections.abc import Mapping

from alnair.model.elastic_plan import ElasticDemand


class NodesRoom:
    """Nodes with GPUs; each worker lies on one of them, on the fullest that has room.

    Args:
        free: GPUs that are free on each node.
        gpus: of one worker, by job; of a whole claim.
        there: the nodes of each job's workers, those that go first last.
    """

    def __init__(
        self,
        free: Mapping[str, int],
        gpus: Mapping[str, int],
        there: Mapping[str, list[str]] | None = None,
    ) -> None:
        self.free = dict(free)
        self.gpus = dict(gpus)
        self.there = {key: list(nodes) for key, nodes in (there or {}).items()}
        self._left: dict[str, list[str]] = {}
        self.asked = 0

    def place(self, key: str, workers: int) -> bool:
        """Place all or none."""
        self.asked += 1
        placed: list[tuple[str, bool]] = []
        for _ in range(workers):
            node, was_here = self._node(key)
            if node is None:
                for back, was in reversed(placed):
                    self.free[back] += self.gpus[key]
                    self.there[key].remove(back)
                    if was:
                        self._left.setdefault(key, []).append(back)
                return False
            self.free[node] -= self.gpus[key]
            self.there.setdefault(key, []).append(node)
            placed.append((node, was_here))
        return True

    def release(self, key: str, workers: int) -> None:
        """Take away the last ones."""
        for _ in range(workers):
            node = self.there[key].pop()
            self.free[node] += self.gpus[key]
            self._left.setdefault(key, []).append(node)

    def _node(self, key: str) -> tuple[str | None, bool]:
        left = self._left.get(key, [])
        if left and self.free[left[-1]] >= self.gpus[key]:
            return left.pop(), True
        fitting = [node for node, free in self.free.items() if free >= self.gpus[key]]
        return min(fitting, key=lambda node: (self.free[node], node), default=None), False


def one_pool(gpus: int, jobs: list[ElasticDemand], **claims: int) -> NodesRoom:
    """A single node with so many GPUs, of which the jobs' placed workers have theirs."""
    sizes = {job.key: int(job.gpus) for job in jobs} | claims
    there = {job.key: ["node"] * job.placed for job in jobs}
    used = sum(sizes[key] * len(nodes) for key, nodes in there.items())
    return NodesRoom({"node": gpus - used}, sizes, there)
