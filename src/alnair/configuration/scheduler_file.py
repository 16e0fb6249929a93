"""The scheduler's configuration file: its fields, and how it is read.

The spelling is that of kube-scheduler's `KubeSchedulerConfiguration` v1 where both have a field.
"""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import msgspec
import yaml

from alnair.configuration.strict_yaml import DocumentError, parse, read
from alnair.kube.lease_timings import LEASE_DURATION, RENEW_DEADLINE, RETRY_PERIOD
from alnair.model import names
from alnair.scheduler.profiles import PROFILES

API_VERSION: Final = "scheduler.alnair.io/v1alpha1"
KIND: Final = "SchedulerConfiguration"
#: Of pods that name no scheduler.
DEFAULT_SCHEDULER: Final = "default-scheduler"

_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}
_DURATION: Final = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h))+")


class ConfigurationError(Exception):
    """The configuration cannot be used; one line per problem, each with the file and the field."""

    def __init__(self, source: str, lines: Iterable[str]) -> None:
        super().__init__("\n".join(f"{source}: {line}" for line in lines))


class _Section(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="camel"):
    """A part of the file."""


class LeaderElection(_Section, frozen=True):
    """Which of several processes schedules. Durations are as in Kubernetes: `12s`, `1m30s`.

    A leader that dies is replaced within leaseDuration + retryPeriod.
    """

    leader_elect: bool = True
    lease_duration: str = f"{LEASE_DURATION}s"
    renew_deadline: str = f"{RENEW_DEADLINE:g}s"
    retry_period: str = f"{RETRY_PERIOD:g}s"
    resource_name: str = names.SCHEDULER
    resource_namespace: str = names.NAMESPACE
    #: Unique per process; empty = host and a random part.
    identity: str = ""

    def problems(self) -> list[str]:
        """Return what is wrong beyond the types."""
        fields = ("leaseDuration", "renewDeadline", "retryPeriod")
        texts = (self.lease_duration, self.renew_deadline, self.retry_period)
        found = [
            f"{field}: {text!r} is no duration: write one such as 12s, 500ms or 1m30s"
            for field, text in zip(fields, texts, strict=True)
            if not _DURATION.fullmatch(text)
        ]
        if found:
            return found
        lease, renew, retry = map(seconds, texts)
        if not lease > renew > retry > 0:
            found.append("leaseDuration: must be > renewDeadline > retryPeriod > 0")
        if lease != int(lease):
            found.append("leaseDuration: a Lease knows whole seconds only: write one such as 12s")
        places = {"resourceName": self.resource_name, "resourceNamespace": self.resource_namespace}
        found += [
            f"{field}: {text!r} is no name of an object: use a-z, 0-9, - and ."
            for field, text in places.items()
            if not re.fullmatch(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?", text)
        ]
        return found


class ClientConnection(_Section, frozen=True):
    """How the API server is reached."""

    #: Empty = as kubectl, or in-cluster.
    kubeconfig: str = ""
    context: str = ""
    #: Bindings under way at once.
    bindings: Annotated[int, msgspec.Meta(ge=1, le=256)] = 32


class Serving(_Section, frozen=True):
    """Where health, metrics and debug pages are served; port 0 takes a free one.

    Attributes:
        secure: Over TLS, and past the health only to whom the API server allows.
        tls_cert_file: Empty, as the key: the process makes its own.
    """

    host: str = "127.0.0.1"
    port: Annotated[int, msgspec.Meta(ge=0, le=65535)] = 0
    secure: bool = False
    tls_cert_file: str = ""
    tls_private_key_file: str = ""

    def problems(self) -> list[str]:
        """Return what is wrong beyond the types."""
        if bool(self.tls_cert_file) != bool(self.tls_private_key_file):
            return ["tlsCertFile: goes with tlsPrivateKeyFile: give both, or neither"]
        if self.tls_cert_file and not self.secure:
            return ["tlsCertFile: is used with secure alone: write secure: true"]
        return []


class Logging(_Section, frozen=True):
    """What is logged, and how; `json` is one object per line."""

    format: Literal["text", "json"] = "text"
    level: Literal["debug", "info", "warning", "error"] = "info"


class Backfilling(_Section, frozen=True):
    """Whether what waits long gets a reservation, and after how long."""

    enabled: bool = True
    patience: str = "5m"

    def problems(self) -> list[str]:
        """Return what is wrong beyond the types."""
        if _DURATION.fullmatch(self.patience):
            return []
        return [f"patience: {self.patience!r} is no duration: write one such as 5m or 90s"]


class EnabledPlugin(_Section, frozen=True):
    """A plugin of a profile; the weight is its score's, None = as in the profile it starts from."""

    name: str
    weight: Annotated[int, msgspec.Meta(ge=1, le=100)] | None = None


class DisabledPlugin(_Section, frozen=True):
    """A plugin that a profile does not have; `*` is all that it would start with."""

    name: str


class PluginSet(_Section, frozen=True):
    """What differs from the profile that this one starts from."""

    enabled: tuple[EnabledPlugin, ...] = ()
    disabled: tuple[DisabledPlugin, ...] = ()


class PluginConfig(_Section, frozen=True):
    """Arguments of one plugin; they replace those of the profile that this one starts from."""

    name: str
    args: dict[str, Any] = {}


class ProfileConfiguration(_Section, frozen=True):
    """A scheduler name, and what schedules its pods.

    Attributes:
        like: The built-in profile to start from; empty = the one of this name, or
            `alnair-scheduler`.
    """

    scheduler_name: str
    like: str = ""
    plugins: PluginSet = PluginSet()
    plugin_config: tuple[PluginConfig, ...] = ()


class Configuration(_Section, frozen=True):
    """All that the scheduler can be told.

    Attributes:
        seed: Chooses the order in which equally good nodes are taken.
        dry_run: Decide and say so, and write nothing to the API server.
        pairs: A file of measured pairs of workloads, for the plugin Interference; from the folder
            of the configuration file if it is no absolute path. Empty = there is none.
        profiles: None = the built-in ones.
    """

    api_version: Literal["scheduler.alnair.io/v1alpha1"] = API_VERSION
    kind: Literal["SchedulerConfiguration"] = KIND
    leader_election: LeaderElection = LeaderElection()
    client_connection: ClientConnection = ClientConnection()
    serving: Serving = Serving()
    logging: Logging = Logging()
    backfill: Backfilling = Backfilling()
    seed: Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)] = 0
    dry_run: bool = False
    pairs: str = ""
    profiles: tuple[ProfileConfiguration, ...] | None = None

    def problems(self) -> list[str]:
        """Return what is wrong beyond the types."""
        found = [f"leaderElection.{line}" for line in self.leader_election.problems()]
        found += [f"backfill.{line}" for line in self.backfill.problems()]
        found += [f"serving.{line}" for line in self.serving.problems()]
        if self.profiles is not None and not self.profiles:
            found.append("profiles: is empty: list one, or leave it out for the built-in ones")
        seen: dict[str, int] = {}
        for i, profile in enumerate(self.profiles or ()):
            name = profile.scheduler_name
            if not name:
                found.append(f"profiles[{i}].schedulerName: is empty: name the profile")
            elif name in seen:
                found.append(
                    f"profiles[{i}].schedulerName: {name} is that of profiles[{seen[name]}] too:"
                    " names must differ"
                )
            seen.setdefault(name, i)
        return found


def load(path: Path | None) -> Configuration:
    """Read a configuration file; None is the built-in configuration.

    Raises:
        ConfigurationError: It cannot be read, or not all of it is understood.
    """
    if path is None:
        return Configuration()
    try:
        raw = parse(path.read_text(encoding="utf-8"))
        _require_version(raw)
        return read(raw, Configuration)
    except OSError as error:
        said = error.strerror or str(error)
        raise ConfigurationError(str(path), [f"cannot be read: {said}"]) from error
    except UnicodeDecodeError as error:
        raise ConfigurationError(str(path), ["is no text in UTF-8"]) from error
    except DocumentError as error:
        raise ConfigurationError(str(path), error.lines) from None


def _require_version(raw: object) -> None:
    """Fail on a file of another kind at once: its fields would only be a long list of problems."""
    if isinstance(raw, dict):
        found = (raw.get("apiVersion"), raw.get("kind"))
        if found != (API_VERSION, KIND):
            raise DocumentError(
                [f"apiVersion, kind: write {API_VERSION}, {KIND} (found {found[0]}, {found[1]})"]
            )


def pairs_file(configuration: Configuration, folder: Path | None) -> Path | None:
    """Return the file of measured pairs that a configuration of this folder names, if any."""
    return (folder or Path()) / configuration.pairs if configuration.pairs else None


def override(
    configuration: Configuration, values: Mapping[str, Mapping[str, object]]
) -> Configuration:
    """Return the configuration with these values: section → field → value, None = leave as it is.

    The section `""` is the top.
    """
    for section, fields in values.items():
        given = {name: value for name, value in fields.items() if value is not None}
        if section:
            inner = msgspec.structs.replace(getattr(configuration, section), **given)
            given = {section: inner}
        configuration = msgspec.structs.replace(configuration, **given)
    return configuration


def with_default_scheduler(configuration: Configuration) -> Configuration:
    """Return the configuration with a profile for pods that name no scheduler of ours."""
    profiles = configuration.profiles
    if profiles is None:
        profiles = tuple(ProfileConfiguration(name) for name in PROFILES)
    if all(profile.scheduler_name != DEFAULT_SCHEDULER for profile in profiles):
        profiles += (ProfileConfiguration(DEFAULT_SCHEDULER, like=names.SCHEDULER),)
    return msgspec.structs.replace(configuration, profiles=profiles)


def duration(number: float | None) -> str | None:
    """Return seconds as a duration."""
    return None if number is None else f"{number:g}s"


def dump(configuration: Configuration) -> str:
    """Return the configuration as YAML, with every field that has a value."""
    return yaml.safe_dump(
        _without_none(msgspec.to_builtins(configuration)), sort_keys=False, width=100
    )


def _without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_none(inner) for key, inner in value.items() if inner is not None}
    return [_without_none(item) for item in value] if isinstance(value, list | tuple) else value


def seconds(duration: str) -> float:
    """Return the seconds of a duration that was checked."""
    parts = re.findall(r"([\d.]+)(ms|s|m|h)", duration)
    return sum(float(number) * _UNITS[unit] for number, unit in parts)
