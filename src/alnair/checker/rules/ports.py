"""No host port of a node is promised twice."""

from collections.abc import Iterator, Sequence

from alnair.checker.objects.nodes import CheckedNode
from alnair.checker.objects.pods import CheckedPod
from alnair.checker.violation import Violation

_ANY = "0.0.0.0"


def host_ports(node: CheckedNode, pods: Sequence[CheckedPod]) -> Iterator[Violation]:
    """No two pods of ours have the same port, protocol and address; 0.0.0.0 is every address.

    Pods of others do not count: they may have come later, and nobody can clear that up.
    """
    taken: dict[tuple[str, int], list[tuple[str, CheckedPod]]] = {}
    for pod in pods:
        if not pod.ours:
            continue
        for address, protocol, number in pod.ports:
            for other, holder in taken.get((protocol, number), ()):
                if holder is not pod and (other == address or _ANY in (other, address)):
                    yield Violation(
                        "host-ports",
                        pod.title,
                        node.name,
                        used=f"{address}:{number}/{protocol}, which {holder.title} has",
                        limit="a free port",
                    )
            taken.setdefault((protocol, number), []).append((address, pod))
