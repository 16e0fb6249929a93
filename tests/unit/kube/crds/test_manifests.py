"""CRD manifests from types; that the API server takes them is tested against a real one."""

import datetime as dt
import enum
from typing import Annotated, Any, Literal

import msgspec
import pytest

from alnair.kube.crds.manifests import AGE, Column, CrdDefinition, Rule, Scale, crd, to_yaml
from alnair.kube.crds.schema import schema_of


class Mode(enum.StrEnum):
    PACK = "pack"
    SPREAD = "spread"


class Template(msgspec.Struct, rename="camel"):
    """What one worker runs."""

    image: Annotated[str, msgspec.Meta(min_length=1, max_length=255, pattern="^[a-z]")]
    """Container image."""
    pull_policy: Literal["Always", "Never"] = "Always"


class Spec(msgspec.Struct, rename="camel"):
    min_replicas: Annotated[int, msgspec.Meta(ge=1, le=1000)]
    """Workers that are
    needed at least."""
    template: Template
    max_replicas: int | None = None
    mode: Mode = Mode.PACK
    limits: dict[str, str | int] = {}


class Status(msgspec.Struct, rename="camel"):
    phase: str | None = None


CASES: list[tuple[Any, dict[str, Any]]] = [
    (str, {"type": "string"}),
    (bool, {"type": "boolean"}),
    (int, {"type": "integer", "format": "int64"}),
    (float, {"type": "number", "format": "double"}),
    (bytes, {"type": "string", "format": "byte"}),
    (dt.datetime, {"type": "string", "format": "date-time"}),
    (int | None, {"type": "integer", "format": "int64"}),
    (Mode, {"type": "string", "enum": ["pack", "spread"]}),
    (
        Annotated[int, msgspec.Meta(gt=0, lt=10)],
        {
            "type": "integer",
            "format": "int64",
            "minimum": 0,
            "exclusiveMinimum": True,
            "maximum": 10,
            "exclusiveMaximum": True,
        },
    ),
    (
        Annotated[int, msgspec.Meta(ge=0, le=100, multiple_of=5)],
        {"type": "integer", "format": "int32", "minimum": 0, "maximum": 100, "multipleOf": 5},
    ),
    (
        Annotated[list[str], msgspec.Meta(min_length=1, max_length=3)],
        {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 3},
    ),
    (tuple[bool, ...], {"type": "array", "items": {"type": "boolean"}}),
    (
        set[str],
        {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
    ),
    (dict[str, bool], {"type": "object", "additionalProperties": {"type": "boolean"}}),
    (dict[str, Any], {"type": "object", "x-kubernetes-preserve-unknown-fields": True}),
    (msgspec.Raw, {"x-kubernetes-preserve-unknown-fields": True}),
    (
        str | int,
        {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "x-kubernetes-int-or-string": True,
        },
    ),
    (
        Annotated[str, msgspec.Meta(pattern="^[0-9]+$")] | int,
        {
            "anyOf": [{"type": "integer"}, {"type": "string"}],
            "x-kubernetes-int-or-string": True,
            "pattern": "^[0-9]+$",
        },
    ),
    (
        Annotated[
            list[str] | None, msgspec.Meta(extra_json_schema={"x-kubernetes-list-type": "set"})
        ],
        {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"},
    ),
]


@pytest.mark.parametrize(("kind", "expected"), CASES, ids=[str(kind) for kind, _ in CASES])
def test_a_type_has_its_structural_schema(kind: Any, expected: dict[str, Any]) -> None:
    assert schema_of(kind) == expected


def test_a_struct_brings_names_texts_defaults_and_what_is_required() -> None:
    assert schema_of(Spec) == {
        "type": "object",
        "properties": {
            "minReplicas": {
                "description": "Workers that are needed at least.",
                "type": "integer",
                "format": "int32",
                "minimum": 1,
                "maximum": 1000,
            },
            "template": {
                "type": "object",
                "description": "What one worker runs.",
                "properties": {
                    "image": {
                        "description": "Container image.",
                        "type": "string",
                        "minLength": 1,
                        "maxLength": 255,
                        "pattern": "^[a-z]",
                    },
                    "pullPolicy": {
                        "type": "string",
                        "enum": ["Always", "Never"],
                        "default": "Always",
                    },
                },
                "required": ["image"],
            },
            "maxReplicas": {"type": "integer", "format": "int64"},
            "mode": {"type": "string", "enum": ["pack", "spread"], "default": "pack"},
            "limits": {
                "type": "object",
                "additionalProperties": {
                    "anyOf": [{"type": "integer"}, {"type": "string"}],
                    "x-kubernetes-int-or-string": True,
                },
            },
        },
        "required": ["minReplicas", "template"],
    }


class Node(msgspec.Struct):
    children: "list[Node]"


class Tagged(msgspec.Struct, tag="kind"):
    a: int


class Number(enum.IntEnum):
    ONE = 1


class Holder(msgspec.Struct, rename="camel"):
    bad_field: list[str | float]


@pytest.mark.parametrize(
    ("kind", "says"),
    [
        (Holder, r"Holder\.badField\[\]: of the unions"),
        (Node, r"Node\.children\[\]: Node contains itself"),
        (Tagged, "Tagged: Tagged is tagged"),
        (Number, "only enumerations of texts"),
        (dict[int, str], "keys of a map must be texts"),
        (complex | None, "has no structural schema|unsupported"),
    ],
)
def test_a_type_without_structural_schema_is_refused_with_its_place(kind: Any, says: str) -> None:
    with pytest.raises(TypeError, match=says):
        schema_of(kind)


def test_a_definition_becomes_a_manifest() -> None:
    definition = CrdDefinition(
        group="test.alnair",
        version="v1",
        kind="Job",
        plural="jobs",
        spec=Spec,
        status=Status,
        short_names=("tj",),
        categories=("all",),
        columns=(Column("Phase", ".status.phase", priority=1, description="Where it is."), AGE),
        rules=(Rule("self.spec.minReplicas < 9", "less than nine", ".spec.minReplicas"),),
        spec_rules=(Rule("self.mode != ''", "a mode", ".mode", "'a mode, not ' + self.mode"),),
        scale=Scale(".spec.minReplicas", ".status.replicas", ".status.selector"),
        annotations={"api-approved.kubernetes.io": "unapproved"},
        description="A job.",
    )
    manifest = crd(definition)
    assert manifest["metadata"] == {
        "name": "jobs.test.alnair",
        "annotations": {"api-approved.kubernetes.io": "unapproved"},
    }
    assert manifest["spec"]["names"] == {
        "kind": "Job",
        "listKind": "JobList",
        "plural": "jobs",
        "singular": "job",
        "shortNames": ["tj"],
        "categories": ["all"],
    }
    (version,) = manifest["spec"]["versions"]
    root = version["schema"]["openAPIV3Schema"]
    assert root["required"] == ["spec"]
    assert root["description"] == "A job."
    assert list(root["properties"]) == ["apiVersion", "kind", "metadata", "spec", "status"]
    assert root["x-kubernetes-validations"] == [
        {
            "rule": "self.spec.minReplicas < 9",
            "message": "less than nine",
            "fieldPath": ".spec.minReplicas",
        }
    ]
    assert root["properties"]["spec"]["x-kubernetes-validations"] == [
        {
            "rule": "self.mode != ''",
            "message": "a mode",
            "fieldPath": ".mode",
            "messageExpression": "'a mode, not ' + self.mode",
        }
    ]
    assert version["subresources"] == {
        "status": {},
        "scale": {
            "specReplicasPath": ".spec.minReplicas",
            "statusReplicasPath": ".status.replicas",
            "labelSelectorPath": ".status.selector",
        },
    }
    assert version["additionalPrinterColumns"] == [
        {
            "name": "Phase",
            "type": "string",
            "jsonPath": ".status.phase",
            "priority": 1,
            "description": "Where it is.",
        },
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]
    assert msgspec.yaml.decode(to_yaml(manifest)) == manifest
    assert definition.resource().collection("n") == "/apis/test.alnair/v1/namespaces/n/jobs"


def test_a_kind_without_spec_can_have_fields_of_its_own() -> None:
    definition = CrdDefinition(
        group="test.alnair",
        version="v1",
        kind="Topology",
        plural="topologies",
        namespaced=False,
        fields={"zones": list[str]},
    )
    manifest = crd(definition)
    (version,) = manifest["spec"]["versions"]
    assert manifest["spec"]["scope"] == "Cluster"
    assert "subresources" not in version
    properties = version["schema"]["openAPIV3Schema"]["properties"]
    assert list(properties) == ["apiVersion", "kind", "metadata", "zones"]
