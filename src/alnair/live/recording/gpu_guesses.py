"""Which GPUs pods have that do not say so: those of schedulers that only count GPUs."""

from collections.abc import Iterable, Mapping

from alnair.history.history import NodeHistory, Part

_WHOLE = 1000.0


class Guess:
    """Books GPUs over time; ask in the order of the pods' bindings.

    Attributes:
        memory: of each node's GPUs, MiB by uuid.
    """

    def __init__(self, nodes: Mapping[str, NodeHistory]) -> None:
        self.memory = {
            name: {gpu.uuid: gpu.memory_mib for gpu in item.node.gpus}
            for name, item in nodes.items()
        }
        #: What is held of a GPU until when: (end, milli).
        self._held: dict[str, list[tuple[float, float]]] = {}

    def hold(self, parts: Iterable[Part], begin: float, end: float) -> None:
        """Book parts; what ended before is forgotten."""
        for part in parts:
            held = [item for item in self._held.get(part.uuid, ()) if item[0] > begin]
            self._held[part.uuid] = [*held, (end, part.milli)]

    def parts(self, node: str, whole: int, milli: float, now: float) -> tuple[Part, ...]:
        """Return GPUs that a pod likely has: the lowest free ones, its slice on the fullest.

        Fewer if there are not enough: then what is known of the node is wrong.
        """
        free = {uuid: _WHOLE - self._in_use(uuid, now) for uuid in self.memory.get(node, {})}
        taken = [uuid for uuid, left in free.items() if left >= _WHOLE][:whole]
        found = [Part(uuid, _WHOLE) for uuid in taken]
        room = [
            (left, number, uuid)
            for number, (uuid, left) in enumerate(free.items())
            if uuid not in taken and left >= milli
        ]
        if milli and room:
            found.append(Part(min(room)[2], milli))
        return tuple(found)

    def _in_use(self, uuid: str, now: float) -> float:
        return sum(milli for end, milli in self._held.get(uuid, ()) if end > now)
