"""Plugins of other packages: those that they announce at the entry point `alnair.plugins`.

A package is imported only when the configuration names its plugin.
"""

from collections.abc import Mapping
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Final

from alnair.scheduler.framework import extension_points

GROUP: Final = "alnair.plugins"
_EXTENSION_POINTS: Final = tuple(
    protocol
    for name, protocol in vars(extension_points).items()
    if name.endswith("Plugin") and name != "Plugin"
)


class PackageError(Exception):
    """A package's plugin cannot be used; says which package, why, and what to do."""


def announced() -> dict[str, list[EntryPoint]]:
    """Return the plugins of installed packages by name; none is imported."""
    found: dict[str, list[EntryPoint]] = {}
    for point in entry_points(group=GROUP):
        found.setdefault(point.name, []).append(point)
    return found


def load(name: str, points: Mapping[str, list[EntryPoint]]) -> Any:
    """Return the factory of an announced plugin.

    Raises:
        PackageError: Its package cannot be imported, or announces something else.
    """
    first, *others = points[name]
    if others:
        packages = ", ".join(sorted(map(origin, points[name])))
        raise PackageError(f"plugin {name} is announced by several packages ({packages}): keep one")
    try:
        factory = first.load()
    except Exception as error:
        raise PackageError(
            f"plugin {name} of {origin(first)} cannot be imported from {first.value}:"
            f" {type(error).__name__}: {error}; mend the package, or take the plugin out of the"
            " profiles"
        ) from error
    if getattr(factory, "name", None) != name:
        raise PackageError(
            f"plugin {name} of {origin(first)}: {first.value} has the attribute name ="
            f" {getattr(factory, 'name', None)!r}: it must be that of the entry point"
        )
    return factory


def takes_part(plugin: object) -> bool:
    """Return whether the plugin has any extension point."""
    return any(isinstance(plugin, protocol) for protocol in _EXTENSION_POINTS)


def origin(point: EntryPoint) -> str:
    """Return the package and version that announce a plugin, for people."""
    return f"{point.dist.name} {point.dist.version}" if point.dist else "an unknown package"
