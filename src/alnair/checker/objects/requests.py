"""What a pod may use at once, from its containers' requests.

Rules:
https://kubernetes.io/docs/concepts/workloads/pods/init-containers/#resource-sharing-within-containers,
sidecar containers (KEP-753) and pod-level resources (KEP-2837).
"""

from collections.abc import Iterable, Mapping
from fractions import Fraction
from typing import Any

import msgspec

from alnair.checker.objects.amounts import UnreadableError, amount

Amounts = Mapping[str, Fraction]


class CheckedContainer(msgspec.Struct, frozen=True):
    """A container: what it asks for, and whether it has ended when the main containers run."""

    name: str
    amounts: dict[str, Fraction]
    ends: bool = False


def containers(spec: Mapping[str, Any]) -> tuple[CheckedContainer, ...]:
    """Return the containers in order of their start.

    Raises:
        UnreadableError: A quantity is none, or negative.
    """
    found = []
    for entry in spec.get("initContainers") or ():
        stays = entry.get("restartPolicy") == "Always"
        found.append(CheckedContainer(entry.get("name", ""), _asked(entry), ends=not stays))
    found.extend(
        CheckedContainer(entry.get("name", ""), _asked(entry))
        for entry in spec.get("containers") or ()
    )
    return tuple(found)


def _asked(entry: Mapping[str, Any]) -> dict[str, Fraction]:
    resources = entry.get("resources") or {}
    found = read(resources.get("limits"))
    found.update(read(resources.get("requests")))
    return found


def read(amounts: Mapping[str, str | int] | None) -> dict[str, Fraction]:
    """Return a map of quantities.

    Raises:
        UnreadableError: One is none, or negative.
    """
    found = {name: amount(text) for name, text in (amounts or {}).items()}
    for name, value in found.items():
        if value < 0:
            raise UnreadableError(f"{name} is negative")
    return found


def moments(order: Iterable[CheckedContainer]) -> list[list[CheckedContainer]]:
    """Return which containers run together, for each moment at which something new starts last.

    An init container runs beside the sidecars before it; in the end all that stays runs at once.
    """
    staying: list[CheckedContainer] = []
    found = []
    for container in order:
        if container.ends:
            found.append([*staying, container])
        else:
            staying.append(container)
    return [*found, staying]


def most(order: Iterable[CheckedContainer], resource: str) -> Fraction:
    """Return the most of a resource that the containers use at one moment."""
    return max(
        sum((c.amounts.get(resource, Fraction(0)) for c in together), Fraction(0))
        for together in moments(order)
    )


def total(spec: Mapping[str, Any], order: tuple[CheckedContainer, ...]) -> dict[str, Fraction]:
    """Return what a node must have for the pod, per resource, without zeros.

    Raises:
        UnreadableError: A quantity is none, or negative.
    """
    names = {name for container in order for name in container.amounts}
    found = {name: most(order, name) for name in names}
    of_pod = read((spec.get("resources") or {}).get("requests"))
    found |= {
        name: value
        for name, value in of_pod.items()
        if name in {"cpu", "memory"} or name.startswith("hugepages-")
    }
    for name, value in read(spec.get("overhead")).items():
        found[name] = found.get(name, Fraction(0)) + value
    return {name: value for name, value in found.items() if value}
