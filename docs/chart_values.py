"""Reads `charts/alnair/values.yaml` for its README and schema: comments say what values mean."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import scheduler_values
import yaml

_KEY = re.compile(r"( *)([A-Za-z]\w*):(?: |$)")
_COMMENT = re.compile(r" *# ?(.*)")
_ONE_OF = "@one-of: "
_FREE = "@free"
#: What ports and counts may be is narrower than their type.
_BOUNDS: dict[str, dict[str, int]] = {
    "port": {"minimum": 1, "maximum": 65535},
    "replicas": {"minimum": 0},
    "percent": {"minimum": 1, "maximum": 100},
    "memoryMiB": {"minimum": 0},
    "contextMiB": {"minimum": 0, "maximum": 8192},
    "softFactor": {"minimum": 1, "maximum": 10},
}
_SPAN = r"([0-9]+(\.[0-9]+)?[smhdw])+"
_FOLDER = {"pattern": "^(/.*)?$"}
#: Texts that would end a pod at its start, or keep it from being made. Go's regular expressions.
_PATTERNS: dict[tuple[str, ...], dict[str, Any]] = {
    ("image", "registry"): {"pattern": "^[a-z0-9][^:]*(:[0-9]+(/.*)?)?$"},
    ("image", "tag"): {"pattern": r"^(\w[\w.-]*)?$"},
    **{
        (part, "image", "digest"): {"pattern": "^(sha256:[0-9a-f]{64})?$"}
        for part in ("scheduler", "controller", "agent")
    },
    ("controller", "idleEviction", "after"): {"pattern": f"^({_SPAN})?$"},
    ("controller", "idleEviction", "grace"): {"pattern": f"^{_SPAN}$"},
    ("controller", "history", "keep"): {"pattern": f"^{_SPAN}$"},
    ("agent", "idleAfter"): {"pattern": f"^{_SPAN}$"},
    ("agent", "kubeletFolder"): {"pattern": "^/"},
    ("agent", "podLogsFolder"): {"pattern": "^/"},
    ("agent", "driver", "libraries"): _FOLDER,
    ("agent", "driver", "devices"): _FOLDER,
}
_CONFIGURATION = ("scheduler", "configuration")
_PRIORITY_CLASS = {
    "type": "object",
    "additionalProperties": False,
    "required": ["name", "value"],
    "properties": {
        "name": {"type": "string"},
        "value": {"type": "integer"},
        "globalDefault": {"type": "boolean"},
        "preemptionPolicy": {"enum": ["PreemptLowerPriority", "Never"]},
        "description": {"type": "string"},
    },
}


@dataclass(frozen=True)
class Value:
    """One value: its place, such as ("agent", "port"), its default, and what its comment says."""

    path: tuple[str, ...]
    default: Any
    text: str
    one_of: tuple[str, ...] = ()
    is_free: bool = False


def values(text: str) -> Iterator[Value]:
    """Each value that has a comment `# --`, in the order of the file."""
    defaults = yaml.safe_load(text)
    place: list[tuple[int, str]] = []
    comment: list[str] = []
    for line in text.splitlines():
        if match := _KEY.match(line):
            indent, key = len(match[1]), match[2]
            place = [one for one in place if one[0] < indent] + [(indent, key)]
            if comment and comment[0].startswith("-- "):
                yield _value(tuple(key for _, key in place), comment, defaults)
        said = _COMMENT.match(line)
        comment = [*comment, said[1]] if said else []


def _value(path: tuple[str, ...], comment: list[str], defaults: Any) -> Value:
    for key in path:
        defaults = defaults[key]
    words = [line for line in comment if not line.startswith("@")]
    listed = [line[len(_ONE_OF) :] for line in comment if line.startswith(_ONE_OF)]
    allowed = tuple(yaml.safe_load(f"[{listed[0]}]")) if listed else ()
    return Value(path, defaults, " ".join(words)[3:], allowed, _FREE in comment)


def table(text: str) -> str:
    """The values as a table in Markdown."""
    rows = ["| value | default | what |", "|---|---|---|"]
    for value in values(text):
        default = yaml.safe_dump(value.default, default_flow_style=True, width=10**6)
        shown = default.strip().removesuffix("...").strip()
        shown = shown if len(shown) < 60 else "see values.yaml"
        rows.append(f"| `{'.'.join(value.path)}` | `{shown}` | {value.text} |")
    return "\n".join(rows) + "\n"


def schema(text: str) -> dict[str, Any]:
    """The JSON schema of the values: a key that is not in the file is refused."""
    known = {value.path: value for value in values(text)}
    found = _schema((), yaml.safe_load(text), known)
    # Helm hands these to every chart.
    found["properties"]["global"] = {"type": "object"}
    found["definitions"] = scheduler_values.definitions()
    found["properties"]["scheduler"] |= {
        "if": {"properties": {"ownPlugins": {"maxItems": 0}}},
        "then": {"properties": {"configuration": scheduler_values.plugins_of_ours()}},
    }
    return {"$schema": "http://json-schema.org/draft-07/schema#", **found}


def _schema(path: tuple[str, ...], default: Any, known: dict[tuple[str, ...], Value]) -> Any:
    value = known.get(path)
    if path == _CONFIGURATION:
        return {"$ref": "#/definitions/Configuration"}
    if value is not None and value.one_of:
        return {"enum": list(value.one_of)}
    if isinstance(default, dict):
        if value is not None and value.is_free:
            return {"type": "object"}
        return {
            "type": "object",
            "additionalProperties": False,
            "properties": {key: _schema((*path, key), one, known) for key, one in default.items()},
        }
    if path == ("priorityClasses",):
        return {"type": "array", "items": _PRIORITY_CLASS}
    kind = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}
    limits = _PATTERNS.get(path) or _BOUNDS.get(path[-1] if path else "", {})
    return {"type": kind[type(default)], **limits}
