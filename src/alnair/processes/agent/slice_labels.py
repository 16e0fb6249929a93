"""The labels of a slice's figures: where it is, whose it is, and what made that pod.

They follow from the container, so they multiply no series: a slice has one of each figure.
"""

from collections.abc import Callable

from alnair.node.vgpu.containers.container import VgpuContainer


def nobody(_: str) -> tuple[str, str]:
    """Return no owner: pods are not followed here."""
    return "", ""


class SliceLabels:
    """Makes labels.

    Args:
        node: Whose agent this is; empty outside of a cluster.
        owner_of: Kind and name of what controls the pod of a uid, empty where nothing is known.
    """

    def __init__(self, node: str = "", owner_of: Callable[[str], tuple[str, str]] = nobody) -> None:
        self._node = node
        self._owner_of = owner_of

    def of(self, container: VgpuContainer) -> dict[str, str]:
        """Return a container's."""
        pod = container.assignment.pod
        kind, name = self._owner_of(pod.uid)
        return {
            "container": pod.container or container.assignment.name,
            "pod": pod.name,
            "namespace": pod.namespace,
            "node": self._node,
            "owner_kind": kind,
            "owner_name": name,
        }

    def of_slice(self, container: VgpuContainer, row: int) -> dict[str, str]:
        """Return those of its part of one GPU."""
        return {**self.of(container), "gpu": container.assignment.shares[row].uuid}
