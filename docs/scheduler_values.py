"""The JSON schema of the chart's `scheduler.configuration`: what the scheduler itself would read.

Made of the types of the configuration and of the plugins, so that Helm refuses a misspelt plugin
or argument before anything is changed, and not each scheduler at its start.
"""

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from alnair.configuration.scheduler_file import Configuration
from alnair.scheduler.profiles import PROFILES, registry

#: As `scheduler_file` reads durations.
_DURATION: Final = {"type": "string", "pattern": r"^([0-9]+(\.[0-9]+)?(ms|s|m|h))+$"}
_REF: Final = "#/definitions/{name}"

Schema = dict[str, Any]


def definitions() -> dict[str, Schema]:
    """Return what `#/definitions/Configuration` consists of, by name."""
    arguments = {name: getattr(plugin, "Args", None) for name, plugin in registry().items()}
    types = (Configuration, *filter(None, arguments.values()))
    _, parts = msgspec.json.schema_components(types, ref_template=_REF)
    found = {name: _without_words(part) for name, part in parts.items()}
    for field in ("leaseDuration", "renewDeadline", "retryPeriod"):
        found["LeaderElection"]["properties"][field] = _DURATION
    found["Backfilling"]["properties"]["patience"] = _DURATION
    found["ProfileConfiguration"]["properties"]["like"] = {"enum": ["", *PROFILES]}
    found["PluginConfig"]["allOf"] = [_has(name, of) for name, of in arguments.items()]
    return found


def plugins_of_ours() -> Schema:
    """Return what a configuration is like that names no plugin of another package."""
    ours = sorted(registry())
    enabled, disabled = (
        {"items": {"properties": {"name": {"enum": names}}}} for names in (ours, ["*", *ours])
    )
    plugins = {"properties": {"enabled": enabled, "disabled": disabled}}
    profile = {"properties": {"plugins": plugins, "pluginConfig": enabled}}
    return {"properties": {"profiles": {"items": profile}}}


def _has(plugin: str, arguments: type[msgspec.Struct] | None) -> Schema:
    """Return which arguments a plugin has."""
    args = {"$ref": _REF.format(name=arguments.__name__)} if arguments else {"maxProperties": 0}
    return {
        "if": {"properties": {"name": {"const": plugin}}},
        "then": {"properties": {"args": args}},
    }


def _without_words(part: Mapping[str, Any]) -> Schema:
    """Return what of a type's schema refuses something; its fields may be called as its words."""
    kept = {key: value for key, value in part.items() if key not in {"title", "description"}}
    fields = part.get("properties", {})
    kept["properties"] = {
        name: {key: value for key, value in field.items() if key != "default"}
        for name, field in fields.items()
    }
    return kept
