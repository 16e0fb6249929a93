"""CustomResourceDefinition manifests from types.

    crd(CrdDefinition(
        group="scheduling.x-k8s.io", version="v1alpha1", kind="PodGroup", plural="podgroups",
        short_names=("pg",), spec=PodGroupSpec, status=PodGroupStatus,
        columns=(Column("Min", ".spec.minMember", "integer"), AGE),
        rules=(Rule("!has(self.spec.maxMember) || ...", "maxMember must not be less"),),
    ))

returns the manifest as a dict, ready for `Client.apply`; `to_yaml` writes it for people and charts.
Rules on inner types are given where the type is used:
`Annotated[Inner, Meta(extra_json_schema={"x-kubernetes-validations": [...]})]`.
"""

from collections.abc import Mapping
from typing import Any, Literal

import msgspec

from alnair.kube.crds.schema import Schema, is_required, schema_of
from alnair.kube.resources import CRDS, Manifest, Resource

ColumnType = Literal["string", "integer", "number", "boolean", "date"]


class Column(msgspec.Struct, frozen=True):
    """A column of `kubectl get`.

    Attributes:
        name: Its head.
        path: JSONPath in the object, such as ".status.phase".
        type: How the value is printed; "date" prints an age.
        priority: 0 shows always, more only with `-o wide`.
        description: Shown by `kubectl explain`.
    """

    name: str
    path: str
    type: ColumnType = "string"
    priority: int = 0
    description: str = ""


AGE = Column("Age", ".metadata.creationTimestamp", "date")


class Rule(msgspec.Struct, frozen=True):
    """A CEL validation of the whole object, or of its spec.

    Attributes:
        rule: The expression; `self` is the object, `oldSelf` its former state in an update.
        message: What the user reads when it is false.
        field: JSONPath of the field to blame, such as ".spec.maxReplicas".
        said: An expression that gives the message; where it fails, `message` is read.
    """

    rule: str
    message: str
    field: str = ""
    said: str = ""


class Scale(msgspec.Struct, frozen=True):
    """Where `kubectl scale` and autoscalers read and write replica counts."""

    spec_replicas: str
    status_replicas: str
    label_selector: str = ""


class CrdDefinition(msgspec.Struct, frozen=True):
    """One kind with one version.

    Attributes:
        group: API group.
        version: Such as "v1alpha1".
        kind: Name in manifests.
        plural: Name in URLs, lower case.
        spec: Type of `.spec`, None if the kind has none.
        status: Type of `.status`; None leaves it out. With it comes the status subresource.
        fields: Further top-level fields and their types (NodeResourceTopology has `zones`).
        namespaced: Whether objects live in namespaces.
        short_names: For kubectl.
        categories: Such as "all".
        columns: Of `kubectl get`, after the name.
        rules: CEL validations of the whole object.
        spec_rules: Those of the spec alone, where `self` is the spec. Of an object that is there
            already the API server asks them only when its spec changes.
        scale: The scale subresource, if there is one.
        annotations: Of the CRD itself. Groups below k8s.io need `api-approved.kubernetes.io`.
        description: First line of `kubectl explain`.
    """

    group: str
    version: str
    kind: str
    plural: str
    spec: Any = None
    status: Any = None
    fields: Mapping[str, Any] = {}
    namespaced: bool = True
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    columns: tuple[Column, ...] = ()
    rules: tuple[Rule, ...] = ()
    spec_rules: tuple[Rule, ...] = ()
    scale: Scale | None = None
    annotations: Mapping[str, str] = {}
    description: str = ""

    @property
    def name(self) -> str:
        """Name of the CRD object."""
        return f"{self.plural}.{self.group}"

    def resource(self) -> Resource[Manifest]:
        """Return the kind as a resource for the client."""
        return Resource(self.group, self.version, self.plural, self.kind, self.namespaced, Manifest)


def crd(definition: CrdDefinition) -> Manifest:
    """Return the manifest of a definition.

    Raises:
        TypeError: A type has no structural schema.
    """
    metadata: dict[str, Any] = {"name": definition.name}
    if definition.annotations:
        metadata["annotations"] = dict(definition.annotations)
    return {
        "apiVersion": CRDS.api_version,
        "kind": CRDS.kind,
        "metadata": metadata,
        "spec": {
            "group": definition.group,
            "names": _names(definition),
            "scope": "Namespaced" if definition.namespaced else "Cluster",
            "versions": [_version(definition)],
        },
    }


def to_yaml(manifest: Manifest) -> str:
    """Write a manifest as YAML, in the order of its keys."""
    return msgspec.yaml.encode(manifest).decode()


def _names(definition: CrdDefinition) -> dict[str, Any]:
    names: dict[str, Any] = {
        "kind": definition.kind,
        "listKind": f"{definition.kind}List",
        "plural": definition.plural,
        "singular": definition.kind.lower(),
    }
    if definition.short_names:
        names["shortNames"] = list(definition.short_names)
    if definition.categories:
        names["categories"] = list(definition.categories)
    return names


def _version(definition: CrdDefinition) -> dict[str, Any]:
    version: dict[str, Any] = {
        "name": definition.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": _root(definition)},
    }
    subresources: dict[str, Any] = {}
    if definition.status is not None:
        subresources["status"] = {}
    if definition.scale is not None:
        subresources["scale"] = {
            "specReplicasPath": definition.scale.spec_replicas,
            "statusReplicasPath": definition.scale.status_replicas,
        }
        if definition.scale.label_selector:
            subresources["scale"]["labelSelectorPath"] = definition.scale.label_selector
    if subresources:
        version["subresources"] = subresources
    if definition.columns:
        version["additionalPrinterColumns"] = [_column(one) for one in definition.columns]
    return version


def _column(column: Column) -> dict[str, Any]:
    printed: dict[str, Any] = {
        "name": column.name,
        "type": column.type,
        "jsonPath": column.path,
    }
    if column.priority:
        printed["priority"] = column.priority
    if column.description:
        printed["description"] = column.description
    return printed


def _root(definition: CrdDefinition) -> Schema:
    properties: Schema = {
        "apiVersion": {"type": "string"},
        "kind": {"type": "string"},
        "metadata": {"type": "object"},
    }
    required = []
    if definition.spec is not None:
        properties["spec"] = schema_of(definition.spec) | _validations(definition.spec_rules)
        if is_required(definition.spec):
            required.append("spec")
    for name, kind in definition.fields.items():
        properties[name] = schema_of(kind)
    if definition.status is not None:
        properties["status"] = schema_of(definition.status)
    root: Schema = {"type": "object", "properties": properties}
    if definition.description:
        root["description"] = definition.description
    if required:
        root["required"] = required
    return root | _validations(definition.rules)


def _validations(rules: tuple[Rule, ...]) -> Schema:
    return {"x-kubernetes-validations": [_rule(rule) for rule in rules]} if rules else {}


def _rule(rule: Rule) -> dict[str, str]:
    written = {"rule": rule.rule, "message": rule.message}
    if rule.field:
        written["fieldPath"] = rule.field
    if rule.said:
        written["messageExpression"] = rule.said
    return written
