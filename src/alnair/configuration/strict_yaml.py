"""Reads YAML that people write into structs, and says everything that is wrong with it at once.

Each problem is a line `path: what is wrong, and what to write`.
"""

import difflib
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec
import yaml

T = TypeVar("T", bound=msgspec.Struct)


class DocumentError(ValueError):
    """What is wrong with a document, line by line."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.lines = list(lines)
        super().__init__("\n".join(self.lines))


class _Loader(yaml.SafeLoader):
    """A safe loader that refuses a key that is there twice: YAML would take the last one."""

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        seen: set[object] = set()
        for key_node, _ in node.value:
            key = self.construct_object(key_node, deep=True)
            if isinstance(key, str) and key in seen:
                line = key_node.start_mark.line + 1
                raise DocumentError([f"line {line}: {key} is there twice: keep one of them"])
            seen.add(key if isinstance(key, str) else id(key_node))
        return super().construct_mapping(node, deep)


def parse(text: str) -> object:
    """Return what a YAML document holds.

    Raises:
        DocumentError: It is no YAML, or a key is there twice.
    """
    try:
        return yaml.load(text, Loader=_Loader)  # a SafeLoader
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        what = getattr(error, "problem", None) or str(error)
        raise DocumentError([f"{where}this is no YAML: {what}"]) from None
    except RecursionError:
        raise DocumentError(["the document: is nested too deep to be a configuration"]) from None


def read(raw: object, kind: type[T], path: str = "") -> T:
    """Return the struct.

    The struct may have a method `problems() -> list[str]` for what types cannot say, of itself and
    of structs within; its lines begin with a path below it.

    Raises:
        DocumentError: There is anything that the struct does not take.
    """
    if lines := list(_wrong(raw, kind, path)):
        raise DocumentError(lines)
    value = msgspec.convert(raw, kind)
    problems: list[str] = value.problems() if hasattr(value, "problems") else []
    if problems:
        raise DocumentError(below(path, line) for line in problems)
    return value


def did_you_mean(word: object, known: Iterable[str]) -> str:
    """Return the text that helps after an unknown word."""
    names = list(known)
    close = difflib.get_close_matches(str(word), names, 1)
    return f"did you mean {close[0]}?" if close else f"known: {', '.join(names) or 'none'}"


def below(path: str, name: str) -> str:
    """Return the path of a field; a name may be a path of its own."""
    return f"{path}.{name}" if path and not name.startswith("[") else path + name


def _wrong(raw: object, kind: Any, path: str) -> Iterator[str]:
    """Yield what does not fit the type."""
    if isinstance(kind, types.UnionType) or get_origin(kind) is Union:
        inner = [k for k in get_args(kind) if k is not types.NoneType]
        if raw is not None and len(inner) == 1:
            yield from _wrong(raw, inner[0], path)
            return
    elif isinstance(kind, type) and issubclass(kind, msgspec.Struct):
        yield from _wrong_struct(raw, kind, path)
        return
    elif get_origin(kind) in (tuple, list):
        if isinstance(raw, list):
            for i, item in enumerate(raw):
                yield from _wrong(item, get_args(kind)[0], f"{path}[{i}]")
        else:
            yield f"{path}: write a list, not {_called(raw)}"
        return
    elif get_origin(kind) is Literal and raw not in get_args(kind):
        yield f"{path}: {raw!r} is not possible: {did_you_mean(raw, map(str, get_args(kind)))}"
        return
    try:
        msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        text = str(error).replace("`", "").replace("Expected", "expected", 1)
        yield f"{path}: {text}"


def _wrong_struct(raw: object, kind: type[msgspec.Struct], path: str) -> Iterator[str]:
    if not isinstance(raw, Mapping):
        yield f"{path or 'the document'}: write fields and values, not {_called(raw)}"
        return
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    for key in raw:
        if key not in fields:
            yield f"{below(path, str(key))}: there is no such field: {did_you_mean(key, fields)}"
    for name, field in fields.items():
        if name in raw:
            yield from _wrong(raw[name], field.type, below(path, name))
        elif field.required:
            yield f"{below(path, name)}: is missing: it must be given"


def _called(raw: object) -> str:
    names = {dict: "a mapping", list: "a list", str: "a text", type(None): "nothing"}
    numbers = {int: "a number", float: "a number", bool: "a truth value"}
    return (names | numbers).get(type(raw), f"a {type(raw).__name__}")
