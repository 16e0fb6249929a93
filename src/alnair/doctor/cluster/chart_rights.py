"""What the chart lets each component do, as a set of single rights."""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from alnair.kube.resources import Manifest


class Right(NamedTuple):
    """What a request needs, or a rule gives.

    Attributes:
        verb: As RBAC has it.
        resource: `PLURAL[/SUBRESOURCE][.GROUP]`, as `kubectl auth can-i` takes it but for the part
            after the slash.
        namespace: The one namespace in which it is asked for or given; empty for any.
    """

    verb: str
    resource: str
    namespace: str = ""

    def gives(self, request: "Right") -> bool:
        """Whether a rule that gives this allows a request."""
        return self[:2] == request[:2] and self.namespace in ("", request.namespace)

    @property
    def attributes(self) -> dict[str, str]:
        """The `resourceAttributes` of an access review."""
        name, _, group = self.resource.partition(".")
        plural, _, subresource = name.partition("/")
        return {
            "verb": self.verb,
            "group": group,
            "resource": plural,
            "subresource": subresource,
            "namespace": self.namespace,
        }


def rights_by_component(documents: Iterable[Manifest]) -> dict[str, set[Right]]:
    """Return the rights that roles and their bindings give, by component.

    Args:
        documents: Rendered from the chart; its service accounts are called `alnair-COMPONENT`.
    """
    every = list(documents)
    roles = {(one["kind"], one["metadata"]["name"]): one for one in every if "rules" in one}
    found: dict[str, set[Right]] = {}
    for binding in every:
        if not binding["kind"].endswith("RoleBinding"):
            continue
        role = roles[binding["roleRef"]["kind"], binding["roleRef"]["name"]]
        place = binding["metadata"].get("namespace", "")
        for subject in binding["subjects"]:
            if subject["kind"] == "ServiceAccount":
                component = subject["name"].removeprefix("alnair-")
                found.setdefault(component, set()).update(_rights(role["rules"], place))
    return found


def _rights(rules: Iterable[dict[str, Any]], place: str) -> Iterator[Right]:
    for rule in rules:
        for group in rule.get("apiGroups", ()):  # none for pages of no resource
            for resource in rule["resources"]:
                name = f"{resource}.{group}" if group else resource
                yield from (Right(verb, name, place) for verb in rule["verbs"])
