"""Whether selector requirements are well formed, and what is wrong with them in Kubernetes' words.

Source: `k8s.io/apimachinery/pkg/labels` (NewRequirement), `pkg/api/validate/content` and
`component-helpers/scheduling/corev1/nodeaffinity`. A required node selector term with a malformed
requirement matches nothing; elsewhere it is an error. The API server does not refuse all of them.
"""

import json
import re
from collections.abc import Sequence
from typing import Final

from alnair.model.workload import Requirement, Term
from alnair.scheduler.state.nodes.integers import parse_int

_NAME_PATTERN: Final = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"
_PREFIX_PATTERN: Final = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_NAME: Final = re.compile(_NAME_PATTERN)
_PREFIX: Final = re.compile(rf"{_PREFIX_PATTERN}(\.{_PREFIX_PATTERN})*")
_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt")

_NAME_TEXT: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an "
    "alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for "
    f"validation is '{_NAME_PATTERN}')"
)
_PREFIX_TEXT: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used "
    rf"for validation is '{_PREFIX_PATTERN}(\.{_PREFIX_PATTERN})*')"
)
_VALUE_TEXT: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or "
    "'.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  "
    f"or '12345', regex used for validation is '({_NAME_PATTERN})?')"
)


def is_well_formed(term: Term) -> bool:
    """Return whether all requirements of the term are."""
    return not term_problems(term, "")


def is_label_key(key: str) -> bool:
    """Return whether this can be the key of a label, which resource names look like too."""
    return not _key_problems(key)


def joined(problems: Sequence[str]) -> str:
    """Return problems as one text, as Kubernetes joins them."""
    distinct = list(dict.fromkeys(problems))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def term_problems(term: Term, path: str) -> list[str]:
    """Return what is wrong with a node selector term at this path."""
    found = []
    for i, requirement in enumerate(term.labels):
        found += requirement_problems(requirement, f"{path}.matchExpressions[{i}]")
    for i, requirement in enumerate(term.fields):
        found += _field_problems(requirement, f"{path}.matchFields[{i}]")
    return found


def requirement_problems(requirement: Requirement, path: str = "") -> list[str]:
    """Return what is wrong with a requirement on labels; the path may be empty."""
    key, operator, values = requirement.key, requirement.operator, requirement.values
    dot = f"{path}." if path else ""
    if operator not in _OPERATORS:
        return [_unsupported(f"{dot}operator", operator, _OPERATORS)]
    found = []
    if wrong := _key_problems(key):
        found.append(_invalid(f"{dot}key", key, "; ".join(wrong)))
    if operator in ("In", "NotIn") and not values:
        text = "for 'in', 'notin' operators, values set can't be empty"
        found.append(_invalid(f"{dot}values", None, text))
    elif operator in ("Exists", "DoesNotExist") and values:
        text = "values set must be empty for exists and does not exist"
        found.append(_invalid(f"{dot}values", values, text))
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            text = "for 'Gt', 'Lt' operators, exactly one value is required"
            found.append(_invalid(f"{dot}values", values or None, text))
        text = "for 'Gt', 'Lt' operators, the value must be an integer"
        found += [
            _invalid(f"{dot}values[{i}]", value, text)
            for i, value in enumerate(values)
            if parse_int(value) is None
        ]
    for i, value in enumerate(values):
        if wrong := _value_problems(value):
            found.append(_invalid(f"{dot}values[{i}][{key}]", value, "; ".join(wrong)))
    return found


def _field_problems(requirement: Requirement, path: str) -> list[str]:
    if requirement.operator not in ("In", "NotIn"):
        return [_unsupported(f"{path}.operator", requirement.operator, ("In", "NotIn"))]
    if len(requirement.values) == 1:
        return []
    return [_invalid(f"{path}.values", requirement.values or None, "must have one element")]


def _key_problems(key: str) -> list[str]:
    prefix, slash, name = key.partition("/")
    if "/" in name:
        optional = "with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        return [f"a valid label key {_NAME_TEXT} {optional}"]
    if not slash:
        prefix, name = "", key
    found = []
    if slash and not prefix:
        found.append("prefix part must be non-empty")
    if len(prefix) > 253:
        found.append("prefix part must be no more than 253 bytes")
    if prefix and not _PREFIX.fullmatch(prefix):
        found.append(f"prefix part {_PREFIX_TEXT}")
    if not name:
        found.append("name part must be non-empty")
    elif len(name) > 63:
        found.append("name part must be no more than 63 bytes")
    if not _NAME.fullmatch(name):
        found.append(f"name part {_NAME_TEXT}")
    return found


def _value_problems(value: str) -> list[str]:
    found = ["must be no more than 63 bytes"] if len(value) > 63 else []
    if value and not _NAME.fullmatch(value):
        found.append(_VALUE_TEXT)
    return found


def _invalid(path: str, value: str | tuple[str, ...] | None, text: str) -> str:
    shown = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    return f"{path}: Invalid value: {shown}: {text}"


def _unsupported(path: str, value: str, known: Sequence[str]) -> str:
    values = ", ".join(json.dumps(v) for v in known)
    return f"{path}: Unsupported value: {json.dumps(value)}: supported values: {values}"
