"""Lets observing plugins watch an engine's nodes and pods, and saves what they learn."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from alnair.model.nodes import Node
from alnair.model.workload import Pod
from alnair.scheduler.framework.extension_points import Observer, ObserverPlugin, Profile
from alnair.scheduler.state.cluster import Cluster


class StateError(ValueError):
    """A saved state that is none of the plugin's; says which plugin, and what is wrong."""


class Observers:
    """The observers of one engine: one per plugin name, which all profiles with it share.

    Args:
        profiles: of the engine; without a plugin that observes, all here costs nothing.
        cluster: what they watch.
    """

    def __init__(self, profiles: Iterable[Profile], cluster: Cluster) -> None:
        self._cluster = cluster
        self._plugins = _by_name(profiles)
        self._observers: dict[str, Observer] = {
            name: plugin.observe(cluster) for name, plugin in self._plugins.items()
        }
        for name in self._observers:
            self._publish(name)

    def node_changed(self, node: Node) -> None:
        """Tell of a node that is in the books as it is now."""
        for observer in self._observers.values():
            observer.node_changed(node, self._cluster.columns.row_of[node.name])

    def node_gone(self, name: str) -> None:
        """Tell of a node that is about to leave the books."""
        row = self._cluster.columns.row_of.get(name)
        if row is not None:
            for observer in self._observers.values():
                observer.node_gone(name, row)

    def pod_added(self, pod: Pod) -> None:
        """Tell of a pod that was not known before."""
        for observer in self._observers.values():
            observer.pod_added(pod)

    def pod_gone(self, pod: Pod) -> None:
        """Tell of a pod that ended or was deleted."""
        for observer in self._observers.values():
            observer.pod_gone(pod)

    def learn(self) -> None:
        """Let plugins compile anew what reads something that was learned since."""
        for name, observer in self._observers.items():
            if observer.learn():
                self._publish(name)

    def save(self) -> dict[str, Any]:
        """Return what was learned by plugin name: values that msgspec can encode."""
        states = {name: observer.save() for name, observer in self._observers.items()}
        return {name: state for name, state in states.items() if state is not None}

    def restore(self, states: Mapping[str, Any]) -> None:
        """Know what was saved, and nothing else; states of plugins that are not here are left.

        Raises:
            StateError: a state is none of its plugin's.
        """
        for name, state in _decoded(self._plugins, states).items():
            self._observers[name].restore(state)
            self._publish(name)

    def _publish(self, name: str) -> None:
        self._cluster.observations.put(name, self._observers[name].learned)


def check(profiles: Iterable[Profile], states: Mapping[str, Any]) -> None:
    """Check saved states before anything is made of them.

    Raises:
        StateError: a state is none of its plugin's.
    """
    _decoded(_by_name(profiles), states)


def _by_name(profiles: Iterable[Profile]) -> dict[str, ObserverPlugin]:
    found: dict[str, ObserverPlugin] = {}
    for profile in profiles:
        for plugin in profile.observers:
            found.setdefault(plugin.name, plugin)
    return found


def _decoded(plugins: Mapping[str, ObserverPlugin], states: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state of each plugin that has one, as its own type."""
    found = {}
    for name, plugin in plugins.items():
        state = states.get(name, _former(plugin, states))
        if state is None:
            continue
        try:
            found[name] = msgspec.convert(state, getattr(plugin, "State", Any))
        except msgspec.ValidationError as error:
            raise StateError(f"state of plugin {name}: {error}") from None
    return found


def _former(plugin: ObserverPlugin, states: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the state put together from entries that once were saved one by one."""
    fields: tuple[str, ...] = getattr(plugin, "former_entries", ())
    return {field: states[field] for field in fields if field in states} or None
