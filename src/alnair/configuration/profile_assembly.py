"""From configured profiles to the scheduler's: which plugins, in which order, with what arguments.

All is made here once before anything starts, so a configuration that cannot work is refused whole.
"""

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from alnair.configuration import plugin_packages
from alnair.configuration.scheduler_file import (
    Configuration,
    ConfigurationError,
    DisabledPlugin,
    EnabledPlugin,
    PluginConfig,
    PluginSet,
    ProfileConfiguration,
    load,
    pairs_file,
)
from alnair.configuration.strict_yaml import DocumentError, did_you_mean, read
from alnair.model import names
from alnair.model.pair_rates import PairTables
from alnair.scheduler.framework.extension_points import (
    Plugin,
    Profile,
    QueueSortPlugin,
    ScorePlugin,
)
from alnair.scheduler.framework.plugin_errors import Faults, Guarded
from alnair.scheduler.plugins.interference import Interference
from alnair.scheduler.profiles import PROFILES, QUEUE_SORT, WEIGHTS, registry
from alnair.traces import pair_tables

_log = logging.getLogger(__name__)

#: Disables all plugins that a profile would start with.
_ALL = "*"


class _Use:
    """A plugin of a profile that is being assembled."""

    def __init__(self, weight: int, arguments: Mapping[str, Any], path: str) -> None:
        self.weight = weight
        self.arguments = arguments
        #: Where its arguments, or else its name, are written.
        self.path = path
        #: Where a weight is written; empty if there is none.
        self.weight_path = ""


def assemble(configuration: Configuration, source: str, folder: Path | None = None) -> "Assembly":
    """Return what makes the profiles.

    Args:
        configuration: Read.
        source: Where it is written, for messages.
        folder: From which the files that it names are looked for; None = the working directory.

    Raises:
        ConfigurationError: Anything about it cannot be.
    """
    if problems := configuration.problems():
        raise ConfigurationError(source, problems)
    try:
        return Assembly(configuration, _pairs(pairs_file(configuration, folder)))
    except DocumentError as error:
        raise ConfigurationError(source, error.lines) from None


def load_profiles(
    path: Path | None, pairs: Path | None = None
) -> tuple[Configuration, tuple[Profile, ...]]:
    """Read a configuration file, or the defaults if there is none, and make its profiles.

    Args:
        path: Of the configuration file.
        pairs: Of measured pairs, which count where the configuration names none.

    Raises:
        ConfigurationError: A file cannot be used.
    """
    configuration = load(path)
    if pairs is not None and not configuration.pairs:
        configuration = msgspec.structs.replace(configuration, pairs=str(pairs.absolute()))
    folder = path.parent if path else None
    return configuration, assemble(configuration, str(path or "command line"), folder).profiles()


def _pairs(path: Path | None) -> PairTables:
    """Return the measured pairs of a file, if there is one."""
    try:
        return pair_tables.load(path) if path else {}
    except pair_tables.PairTableError as error:
        raise DocumentError(f"pairs: {line}" for line in str(error).splitlines()) from None


class UnknownProfileError(Exception):
    """There is no profile of this name; the message lists those that there are."""


def find_profile(profiles: Sequence[Profile], name: str) -> Profile:
    """Return the profile that has this scheduler name.

    Raises:
        UnknownProfileError: There is none.
    """
    for profile in profiles:
        if profile.scheduler == name:
            return profile
    known = ", ".join(profile.scheduler for profile in profiles)
    raise UnknownProfileError(f"there is no profile {name!r}; known are {known}")


class Assembly:
    """The profiles of a configuration.

    Args:
        configuration: Read and checked by itself.
        pairs: Measured pairs, for each Interference whose arguments have none.

    Attributes:
        pairs: The same.

    Raises:
        DocumentError: A plugin is unknown, refuses its arguments, or cannot be loaded; or a profile
            has no or several queue sorts.
    """

    def __init__(self, configuration: Configuration, pairs: PairTables | None = None) -> None:
        self.pairs = dict(pairs or {})
        self._factories: dict[str, Callable[..., Any]] = dict(registry())
        self._announced = plugin_packages.announced()
        self._origins: dict[str, str] = {}
        self._problems: list[str] = []
        wanted = configuration.profiles
        if wanted is None:
            wanted = tuple(ProfileConfiguration(name) for name in PROFILES)
        self._uses = {
            profile.scheduler_name: self._resolve(profile, f"profiles[{i}]")
            for i, profile in enumerate(wanted)
        }
        self._paths = {profile.scheduler_name: f"profiles[{i}]" for i, profile in enumerate(wanted)}
        self.profiles()
        if self._problems:
            raise DocumentError(dict.fromkeys(self._problems))

    def profiles(self) -> tuple[Profile, ...]:
        """Make the profiles; each call makes new ones, for an engine of its own."""
        return tuple(p for name in self._uses if (p := self._profile(name)) is not None)

    def explicit(self) -> tuple[ProfileConfiguration, ...]:
        """Return the profiles spelled out: every plugin, weight and argument."""
        return tuple(self._spell_out(profile) for profile in self.profiles())

    # --- which plugins --------------------------------------------------------------------------

    def _resolve(self, profile: ProfileConfiguration, path: str) -> dict[str, _Use]:
        uses = self._start_from(profile, path)
        for i, disabled in enumerate(profile.plugins.disabled):
            where = f"{path}.plugins.disabled[{i}].name"
            if disabled.name == _ALL:
                uses.clear()
            elif self._is_known(disabled.name, where) and uses.pop(disabled.name, None) is None:
                self._problems.append(f"{where}: {disabled.name} is not in it: drop this line")
        seen: set[str] = set()
        for i, enabled in enumerate(profile.plugins.enabled):
            where = f"{path}.plugins.enabled[{i}]"
            if not self._is_known(enabled.name, f"{where}.name"):
                continue
            if enabled.name in seen:
                self._problems.append(f"{where}.name: {enabled.name} is there twice: keep one")
            seen.add(enabled.name)
            weight = WEIGHTS.get(enabled.name, 1)
            use = uses.setdefault(enabled.name, _Use(weight, {}, f"{where}.name"))
            if enabled.weight is not None:
                use.weight, use.weight_path = enabled.weight, f"{where}.weight"
        configured: set[str] = set()
        for i, config in enumerate(profile.plugin_config):
            where = f"{path}.pluginConfig[{i}]"
            if not self._is_known(config.name, f"{where}.name"):
                continue
            if config.name in configured:
                self._problems.append(f"{where}.name: {config.name} is there twice: keep one")
            configured.add(config.name)
            if config.name in uses:
                uses[config.name].arguments, uses[config.name].path = config.args, f"{where}.args"
            else:
                self._problems.append(
                    f"{where}.name: {config.name} is not enabled: list it in plugins.enabled, or"
                    " drop its arguments"
                )
        return uses

    def _start_from(self, profile: ProfileConfiguration, path: str) -> dict[str, _Use]:
        like = profile.like or profile.scheduler_name
        if profile.like and like not in PROFILES:
            self._problems.append(
                f"{path}.like: {like!r} is no built-in profile: {did_you_mean(like, PROFILES)}"
            )
        base = PROFILES[like if like in PROFILES else names.SCHEDULER]
        return {use.plugin: _Use(use.weight, use.arguments, path) for use in base}

    def _with_pairs(self, name: str, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the arguments, and for Interference with them the pairs of the file."""
        if name != Interference.name or not self.pairs or arguments.get("pairs"):
            return arguments
        return {**arguments, "pairs": msgspec.to_builtins(self.pairs)}

    def _is_known(self, name: str, path: str) -> bool:
        if name in self._factories:
            return True
        if name in self._announced:
            try:
                self._factories[name] = plugin_packages.load(name, self._announced)
            except plugin_packages.PackageError as error:
                self._problems.append(f"{path}: {error}")
                return False
            self._origins[name] = plugin_packages.origin(self._announced[name][0])
            return True
        known = [*self._factories, *self._announced]
        self._problems.append(f"{path}: {name!r} is no plugin: {did_you_mean(name, known)}")
        return False

    # --- their arguments ------------------------------------------------------------------------

    def _profile(self, scheduler: str) -> Profile | None:
        uses, path = self._uses[scheduler], self._paths[scheduler]
        made = {name: self._make(name, use) for name, use in uses.items()}
        if any(plugin is None for plugin in made.values()):
            return None
        plugins = [plugin for plugin in made.values() if plugin is not None]
        sorts = [p.name for p in plugins if isinstance(p, QueueSortPlugin)]
        if len(sorts) != 1:
            found = " and ".join(sorts) or "none does"
            self._problems.append(
                f"{path}.plugins: exactly one plugin must sort the queue, and {found}:"
                f" {'disable' if sorts else 'enable'} {sorts[0] if sorts else QUEUE_SORT}"
            )
            return None
        for plugin in plugins:
            use = uses[plugin.name]
            if use.weight_path and not isinstance(plugin, ScorePlugin):
                self._problems.append(f"{use.weight_path}: {plugin.name} has no score: drop it")
            # A plugin of the list may be disabled; a name that is none is a typo.
            for field in ("tieBreakers", "untilLearned"):
                for name in dict(use.arguments).get(field, ()):
                    self._is_known(name, f"{use.path}.{field}")
        weights = {name: use.weight for name, use in uses.items()}
        return Profile(scheduler, plugins, weights)

    def _make(self, name: str, use: _Use) -> Plugin | None:
        factory = self._factories[name]
        origin = self._origins.get(name)
        kind: type[msgspec.Struct] | None = getattr(factory, "Args", None)
        try:
            if kind is not None:
                arguments = self._with_pairs(name, use.arguments)
                plugin = factory(read(dict(arguments), kind, use.path))
            elif use.arguments:
                raise DocumentError([f"{use.path}: {name} takes no arguments: drop them"])
            else:
                plugin = factory()
        except DocumentError as problems:
            self._problems += problems.lines
            return None
        except Exception as error:
            if origin is None:
                raise
            self._problems.append(
                f"{use.path}: plugin {name} of {origin} cannot be made: {type(error).__name__}:"
                f" {error}; mend the package, or take the plugin out of the profiles"
            )
            return None
        if origin is not None:
            return self._guard(plugin, name, origin, use.path)
        checked: Plugin = plugin
        return checked

    def _guard(self, plugin: Any, name: str, origin: str, path: str) -> Plugin | None:
        if not plugin_packages.takes_part(plugin):
            self._problems.append(
                f"{path}: plugin {name} of {origin} has no method of an extension point, such as"
                " filter or score"
            )
            return None
        return Guarded(plugin, Faults(f"plugin {name} of {origin}", _log.error))

    def _spell_out(self, profile: Profile) -> ProfileConfiguration:
        uses = self._uses[profile.scheduler]
        return ProfileConfiguration(
            profile.scheduler,
            plugins=PluginSet(
                enabled=tuple(
                    EnabledPlugin(p.name, profile.weights[p.name] if _scores(p) else None)
                    for p in profile.plugins
                ),
                disabled=(DisabledPlugin(_ALL),),
            ),
            plugin_config=tuple(self._arguments(uses)),
        )

    def _arguments(self, uses: Mapping[str, _Use]) -> Iterator[PluginConfig]:
        for name, use in uses.items():
            kind: type[msgspec.Struct] | None = getattr(self._factories[name], "Args", None)
            if kind is not None:
                arguments = self._with_pairs(name, use.arguments)
                full = msgspec.to_builtins(msgspec.convert(dict(arguments), kind))
                yield PluginConfig(name, full)


def _scores(plugin: Plugin) -> bool:
    return isinstance(plugin, ScorePlugin)
