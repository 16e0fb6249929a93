"""What a plugin can be told: one strict struct per plugin, in the spelling of Kubernetes' v1 files.

A plugin with arguments names their type as its `Args` and takes one as its first parameter; the
configuration file and the conformance cases both come through `made`.
"""

import math
from collections.abc import Callable, Mapping
from typing import Any

import msgspec


class ArgumentError(ValueError):
    """Arguments that a plugin refuses; the text names the field and what it takes."""


class Arguments(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """Arguments of a plugin; fields are camelCase in files."""

    def problems(self) -> list[str]:
        """Return what is wrong beyond the types, each as `path: what, and what to write`."""
        return []


def read(plugin: str, kind: type[Arguments], raw: Mapping[str, Any]) -> Arguments:
    """Return the arguments.

    Raises:
        ArgumentError: a field is unknown, of another type, or out of its range.
    """
    try:
        arguments = msgspec.convert(raw, kind)
    except msgspec.ValidationError as error:
        known = ", ".join(kind.__struct_encode_fields__) or "none"
        raise ArgumentError(f"arguments of {plugin}: {error}; known fields: {known}") from None
    if problems := arguments.problems():
        raise ArgumentError(f"arguments of {plugin}: {'; '.join(problems)}")
    return arguments


def made(factory: Callable[..., Any], raw: Mapping[str, Any], name: str = "") -> Any:
    """Return a plugin made with these arguments, `{}` = its defaults.

    Args:
        factory: a plugin class (or a function); `Args` on it is the type of its arguments, and
            without one it takes none.
        raw: the arguments, as read from JSON or YAML.
        name: of the plugin, for messages; by default the factory's own.

    Raises:
        ArgumentError: the plugin refuses them.
    """
    name = name or getattr(factory, "name", "") or "the plugin"
    kind: type[Arguments] = getattr(factory, "Args", Arguments)
    arguments = read(name, kind, raw)
    return factory(arguments) if kind is not Arguments else factory()


def out_of_range(path: str, value: float, low: float, high: float) -> list[str]:
    """Return the problem of a number that is not within low and high, or nothing."""
    if low <= value <= high:
        return []
    most = "" if math.isinf(high) else f" to {high:g}"
    return [f"{path}: {value:g} is out of range, write a number from {low:g}{most}"]
