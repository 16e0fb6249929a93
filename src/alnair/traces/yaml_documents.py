"""Objects from YAML and JSON that people wrote, each with its place; nothing in it is trusted.

YAML is read by the safe loader. Deep nesting, and aliases that unfold to more than a cluster can
hold, are refused before anything is built from them.
"""

import json
import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import yaml

from alnair.traces.csv_table import Problem

#: Levels of nesting; a pod has about ten.
_DEEPEST: Final = 100
#: Parts of one file after aliases are unfolded: about a million lines.
_MOST_PARTS: Final = 5_000_000
_STEP: Final = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")
_BASE: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class Document(msgspec.Struct, frozen=True):
    """An object of a file.

    Attributes:
        value: as it was written: fractions are text, since quantities must not be rounded.
        source: the file.
        line: where it begins, from 1.
        number: which document of the file, from 0.
        path: where in the document it is, such as `$.items[3]`.
    """

    value: Any
    source: str
    line: int
    number: int
    path: str = "$"


class _Loader(_BASE):  # type: ignore[misc]
    """Reads YAML as Kubernetes does: times stay text, and no key may be there twice."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[object] = set()
        for key, _ in node.value:
            name = (key.tag, key.value) if isinstance(key, yaml.ScalarNode) else id(key)
            if name in seen:
                raise yaml.constructor.ConstructorError(
                    None, None, f"{key.value} is there twice: keep one of them", key.start_mark
                )
            seen.add(name)
        found: dict[Any, Any] = super().construct_mapping(node, deep)
        return found

    def construct_number_as_text(self, node: yaml.ScalarNode) -> str:
        """Return a fraction as it is written."""
        return str(node.value)


_Loader.yaml_implicit_resolvers = {
    first: [(tag, regexp) for tag, regexp in resolvers if tag != "tag:yaml.org,2002:timestamp"]
    for first, resolvers in _BASE.yaml_implicit_resolvers.items()
}
_Loader.add_constructor("tag:yaml.org,2002:float", _Loader.construct_number_as_text)


def read(text: str, source: str, problems: list[Problem]) -> list[Document]:
    """Return the objects of a file, those of lists one by one; what is wrong goes to `problems`."""
    found: list[Document] = []
    whole = _json(text, source, problems) if text.lstrip()[:1] in ("{", "[") else None
    if whole is None:
        whole = _yaml(text, source, problems)
    for document in whole:
        found.extend(_unfolded(document, problems))
    return found


def place(text: str, document: Document, path: str, what: str) -> Problem:
    """Return a problem with the line and column of a part of a document.

    Args:
        text: Of the file.
        document: It is in.
        path: Of the part, from the object, such as `$.spec.containers[0].name`; if there is no
            such part, the nearest one around it is told.
        what: Is wrong.
    """
    inside = document.path + path.removeprefix("$")
    line, column = document.line, 0
    try:
        for number, node in enumerate(yaml.compose_all(text, Loader=_Loader)):
            if number == document.number and node is not None:
                mark = _found(node, inside).start_mark
                line, column = mark.line + 1, mark.column + 1
                break
    except yaml.YAMLError:
        pass  # JSON that is no YAML: the line of the object must do
    where = path.removeprefix("$").removeprefix(".")
    at = f"column {column}, " if column else ""
    return Problem(document.source, line, "", f"{at}{where}: {what}" if where else f"{at}{what}")


def _found(node: Any, path: str) -> Any:
    for name, index in _STEP.findall(path):
        if isinstance(node, yaml.MappingNode):
            inner = [value for key, value in node.value if key.value == name]
        else:
            is_there = isinstance(node, yaml.SequenceNode) and index.isdecimal()
            inner = node.value[int(index) : int(index) + 1] if is_there else []
        if not inner:
            return node
        node = inner[0]
    return node


def _unfolded(document: Document, problems: list[Problem]) -> Iterator[Document]:
    value = document.value
    if value is None:
        return
    if isinstance(value, list):
        items, path = value, document.path
    elif not isinstance(value, dict):
        text = f"a {type(value).__name__} is no object: write apiVersion, kind and metadata"
        problems.append(Problem(document.source, document.line, "", text))
        return
    elif isinstance(value.get("items"), list) and str(value.get("kind", "List")).endswith("List"):
        items, path = value["items"], f"{document.path}.items"
    else:
        yield document
        return
    for i, item in enumerate(items):
        inner = msgspec.structs.replace(document, value=item, path=f"{path}[{i}]")
        yield from _unfolded(inner, problems)


def _json(text: str, source: str, problems: list[Problem]) -> list[Document] | None:
    """Return the document; None if it may be YAML in braces."""
    twice: list[str] = []

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(items)
        if len(found) < len(items):
            names = [name for name, _ in items]
            twice.extend(name for name in found if names.count(name) > 1)
        return found

    try:
        value = json.loads(text, parse_float=str, parse_constant=str, object_pairs_hook=pairs)
    except json.JSONDecodeError as error:
        if not text.lstrip().startswith('{"') and not text.lstrip().startswith("[{"):
            return None
        what = f"column {error.colno}: this is no JSON: {error.msg}"
        problems.append(Problem(source, error.lineno, "", what))
        return []
    except (RecursionError, ValueError) as error:
        what = "is nested too deep" if isinstance(error, RecursionError) else str(error)
        problems.append(Problem(source, 1, "", f"this cannot be read: {what}"))
        return []
    problems.extend(
        Problem(source, 0, "", f"{name} is there twice in one object: keep one of them")
        for name in dict.fromkeys(twice)
    )
    return [Document(value, source, 1, 0)]


def _yaml(text: str, source: str, problems: list[Problem]) -> list[Document]:
    found: list[Document] = []
    try:
        lines = _scan(text)
        for number, value in enumerate(yaml.load_all(text, Loader=_Loader)):
            found.append(Document(value, source, lines[number], number))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        what = getattr(error, "problem", None) or str(error)
        at = f"column {mark.column + 1}: " if mark else ""
        what = f"{at}this cannot be read as YAML: {what}"
        problems.append(Problem(source, mark.line + 1 if mark else 0, "", what))
    except (ValueError, RecursionError) as error:
        problems.append(Problem(source, 0, "", f"this cannot be read as YAML: {error}"))
    return found


def _scan(text: str) -> list[int]:
    """Return the lines at which documents begin; refuse what would unfold to too much.

    Raises:
        YAMLError: It is nested too deep, or aliases make it too large.
    """
    lines: list[int] = []
    anchors: dict[str, int] = {}
    # Per open collection: its anchor, and how many parts it has so far with aliases unfolded.
    stack: list[tuple[str | None, int]] = [(None, 0)]
    for event in yaml.parse(text, Loader=_Loader):
        mark: Any = event.start_mark
        anchor: str | None = getattr(event, "anchor", None)
        if isinstance(event, yaml.DocumentStartEvent):
            lines.append(mark.line + 1)
            anchors.clear()
            continue
        parts = 0
        if isinstance(event, yaml.CollectionStartEvent):
            stack.append((anchor, 1))
        elif isinstance(event, yaml.CollectionEndEvent):
            anchor, parts = stack.pop()
        elif isinstance(event, yaml.AliasEvent):
            if any(name == anchor for name, _ in stack):
                raise yaml.composer.ComposerError(
                    None, None, f"*{anchor} is inside of what it stands for", mark
                )
            parts, anchor = anchors.get(anchor or "", 1), None
        elif isinstance(event, yaml.ScalarEvent):
            parts = 1
        if parts:
            if anchor is not None:
                anchors[anchor] = parts
            name, sum_ = stack[-1]
            stack[-1] = (name, sum_ + parts)
        if len(stack) > _DEEPEST or stack[-1][1] > _MOST_PARTS:
            what = (
                f"is nested deeper than {_DEEPEST} levels"
                if len(stack) > _DEEPEST
                else f"unfolds to more than {_MOST_PARTS} parts"
            )
            raise yaml.composer.ComposerError(
                None, None, f"{what}: no object of Kubernetes is like that", mark
            )
    return lines
