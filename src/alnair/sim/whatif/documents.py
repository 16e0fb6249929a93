"""YAML (or JSON) documents whose parts know their line and column."""

import re
from collections.abc import Iterator
from typing import Any, Final

import msgspec
import yaml

_PART: Final = re.compile(r"\.([^.\[\]]+)|\[(\d+|\.\.\.)\]")
#: What YAML would read as a number with a fraction or as a date is text: to Kubernetes it is an
#: amount or a moment.
_TEXTS: Final = ("tag:yaml.org,2002:float", "tag:yaml.org,2002:timestamp")


class ManifestError(ValueError):
    """Manifests that cannot be used; all that is wrong, a line each, with file, line and column."""


class _Loader(yaml.SafeLoader):
    """A safe loader to which only what is plainly a whole number is one."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if tag not in _TEXTS]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}


class Document:
    """One object of a file.

    Attributes:
        raw: its plain values.
    """

    def __init__(self, source: str, node: yaml.Node, raw: Any) -> None:
        self.raw = raw
        self._source = source
        self._node = node

    def items(self) -> "Iterator[Document]":
        """Return the objects of a List, or the object itself."""
        if not (isinstance(self.raw, dict) and str(self.raw.get("kind")).endswith("List")):
            yield self
            return
        node, _ = _down(self._node, [("items", -1)])
        if not isinstance(node, yaml.SequenceNode):
            return
        for part, raw in zip(node.value, self.raw["items"], strict=True):
            yield from Document(self._source, part, raw).items()

    def where(self, path: str = "") -> str:
        """Return file, line and column of a part, or of the nearest that is there.

        Args:
            path: such as `$.spec.containers[0].name`.
        """
        parts = [(key, int(index) if index.isdigit() else -1) for key, index in _PART.findall(path)]
        node, _ = _down(self._node, parts)
        mark = node.start_mark
        return f"{self._source}:{mark.line + 1}:{mark.column + 1}"

    def problem(self, text: str, path: str = "") -> str:
        """Return a problem with where it is and of which object."""
        meta = self.raw.get("metadata") if isinstance(self.raw, dict) else None
        kind = self.raw.get("kind", "object") if isinstance(self.raw, dict) else "object"
        name = meta.get("name", "") if isinstance(meta, dict) else ""
        return f"{self.where(path)}: {kind} {name}: {text}".replace(" : ", ": ")

    def convert(self, raw: Any, kind: Any, problems: list[str], path: str = "$") -> Any:
        """Return the struct of a part; None, and a problem, if it is none.

        Args:
            raw: the part.
            kind: of the struct.
            problems: takes what is wrong.
            path: of the part in the document.
        """
        try:
            return msgspec.convert(raw, kind, strict=False)
        except msgspec.ValidationError as error:
            what, _, at = str(error).partition(" - at `")
            full = path + at.rstrip("`").removeprefix("$")
            problems.append(self.problem(f"{full.removeprefix('$.')}: {what}", full))
            return None


def read(text: str, source: str) -> list[Document]:
    """Return the objects of a file.

    Raises:
        ManifestError: it is no YAML, or holds something else than objects.
    """
    found: list[Document] = []
    loader = _Loader(text)
    try:
        while loader.check_node():
            node = loader.get_node()
            raw = loader.construct_document(node)
            if node is not None and raw is not None:
                found.append(Document(source, node, raw))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{source}:{mark.line + 1}:{mark.column + 1}" if mark else source
        raise ManifestError(f"{where}: this is no YAML: {error.problem}") from None
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise ManifestError(f"{source}: this is no YAML: {error}") from None
    finally:
        loader.dispose()
    found = [item for document in found for item in document.items()]
    if wrong := [d for d in found if not _is_object(d.raw)]:
        raise ManifestError(
            "\n".join(f"{d.where()}: this is no object: it has no kind" for d in wrong)
        )
    if not found:
        raise ManifestError(f"{source}: there is nothing in it: give manifests of pods")
    return found


def _is_object(raw: object) -> bool:
    return isinstance(raw, dict) and isinstance(raw.get("kind"), str)


def _down(node: yaml.Node, parts: list[tuple[str, int]]) -> tuple[yaml.Node, int]:
    """Return the node at a path, as far as it goes, and how far that is."""
    for done, (key, index) in enumerate(parts):
        if isinstance(node, yaml.MappingNode) and key:
            below = [v for k, v in node.value if k.value == key]
        elif isinstance(node, yaml.SequenceNode) and 0 <= index < len(node.value):
            below = [node.value[index]]
        else:
            below = []
        if not below:
            return node, done
        node = below[-1]
    return node, len(parts)
