"""The kubeconfig format: reading files, and merging several as kubectl does.

Only the shape is known here; what a context means for a connection is in `config`. Unknown fields
are ignored, as kubectl does, because other tools keep theirs in the same file.
"""

from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from alnair.kube.errors import ConfigError

T = TypeVar("T")


class ClusterEntry(msgspec.Struct, frozen=True, rename="kebab"):
    """`clusters[].cluster`."""

    server: str = ""
    certificate_authority: str | None = None
    certificate_authority_data: str | None = None
    insecure_skip_tls_verify: bool = False
    tls_server_name: str | None = None
    proxy_url: str | None = None
    extensions: list[dict[str, object]] | None = None


class EnvEntry(msgspec.Struct, frozen=True):
    """`users[].user.exec.env[]`."""

    name: str
    value: str


class ExecEntry(msgspec.Struct, frozen=True, rename="camel"):
    """`users[].user.exec`."""

    command: str
    api_version: str = ""
    args: list[str] | None = None
    env: list[EnvEntry] | None = None
    install_hint: str | None = None
    provide_cluster_info: bool = False
    interactive_mode: str | None = None


class UserEntry(msgspec.Struct, frozen=True, rename="kebab"):
    """`users[].user`."""

    client_certificate: str | None = None
    client_certificate_data: str | None = None
    client_key: str | None = None
    client_key_data: str | None = None
    token: str | None = None
    token_file: str | None = msgspec.field(default=None, name="tokenFile")
    username: str | None = None
    password: str | None = None
    exec: ExecEntry | None = None
    auth_provider: dict[str, object] | None = None
    as_: str | None = msgspec.field(default=None, name="as")
    as_uid: str | None = None
    as_groups: list[str] | None = None
    as_user_extra: dict[str, list[str]] | None = None


class ContextEntry(msgspec.Struct, frozen=True):
    """`contexts[].context`."""

    cluster: str = ""
    user: str = ""
    namespace: str | None = None


class _NamedCluster(msgspec.Struct, frozen=True):
    name: str
    cluster: ClusterEntry | None = None


class _NamedUser(msgspec.Struct, frozen=True):
    name: str
    user: UserEntry | None = None


class _NamedContext(msgspec.Struct, frozen=True):
    name: str
    context: ContextEntry | None = None


class _File(msgspec.Struct, frozen=True, rename="kebab"):
    clusters: list[_NamedCluster] | None = None
    users: list[_NamedUser] | None = None
    contexts: list[_NamedContext] | None = None
    current_context: str | None = None


class Found(msgspec.Struct, Generic[T], frozen=True):
    """An entry and the file it came from; relative paths in it start at that file's folder."""

    source: Path
    entry: T

    def path(self, text: str) -> Path:
        """Resolve a path that the entry names."""
        return self.source.parent / Path(text).expanduser()


class Kubeconfig(msgspec.Struct, frozen=True):
    """One or several files as one: by name, and the name of the context in use."""

    sources: tuple[Path, ...]
    clusters: dict[str, Found[ClusterEntry]]
    users: dict[str, Found[UserEntry]]
    contexts: dict[str, Found[ContextEntry]]
    current_context: str


def parse(path: Path) -> _File:
    """Read one file.

    Raises:
        ConfigError: It cannot be read, is no YAML, or has a field of the wrong type.
    """
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(
            str(path), "", f"cannot be read: {error.strerror or error}; check path and rights"
        ) from error
    try:
        # An empty file decodes to null; kubectl takes it for an empty configuration.
        return msgspec.yaml.decode(data, type=_File | None) or _File()
    except msgspec.ValidationError as error:
        problem, _, where = str(error).partition(" - at `")
        raise ConfigError(str(path), where.strip("`$."), problem) from error
    except msgspec.DecodeError as error:
        first = " ".join(str(error).split())
        raise ConfigError(str(path), "", f"is not a YAML file: {first}") from error


def merge(paths: list[Path]) -> Kubeconfig:
    """Read files and merge them: of two entries of one name the first wins whole (kubectl).

    Raises:
        ConfigError: As for `parse`.
    """
    clusters: dict[str, Found[ClusterEntry]] = {}
    users: dict[str, Found[UserEntry]] = {}
    contexts: dict[str, Found[ContextEntry]] = {}
    current = ""
    for path in paths:
        file = parse(path)
        for cluster in file.clusters or ():
            clusters.setdefault(cluster.name, Found(path, cluster.cluster or ClusterEntry()))
        for user in file.users or ():
            users.setdefault(user.name, Found(path, user.user or UserEntry()))
        for context in file.contexts or ():
            contexts.setdefault(context.name, Found(path, context.context or ContextEntry()))
        current = current or file.current_context or ""
    return Kubeconfig(tuple(paths), clusters, users, contexts, current)
