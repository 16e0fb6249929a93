"""From a kubeconfig's `users[].user` to credentials: token, certificate, plug-in, other self."""

import base64
import binascii
import sys
from pathlib import Path

import msgspec

from alnair.kube.access.credentials import Certificate, Credential, Credentials, Files, Fixed, read
from alnair.kube.access.exec_credential import VERSIONS, ExecConfig, ExecPlugin
from alnair.kube.access.kubeconfig import ClusterEntry, ExecEntry, Found, UserEntry
from alnair.kube.errors import ConfigError


def impersonation(user: UserEntry) -> dict[str, str | list[str]]:
    """Return the headers that make us act as someone else."""
    headers: dict[str, str | list[str]] = {}
    if user.as_:
        headers["Impersonate-User"] = user.as_
    if user.as_uid:
        headers["Impersonate-Uid"] = user.as_uid
    if user.as_groups:
        headers["Impersonate-Group"] = user.as_groups
    for key, values in (user.as_user_extra or {}).items():
        headers[f"Impersonate-Extra-{key}"] = values
    return headers


def credentials_of(
    user: Found[UserEntry],
    where: str,
    cluster: ClusterEntry,
    authorities: bytes | None,
    server: str,
) -> Credentials:
    """Return the source of credentials that a user entry describes.

    Args:
        user: The entry and its file.
        where: Path of the entry in the file, for errors.
        cluster: The cluster's entry, for plug-ins that ask about it.
        authorities: Its certificate authorities, likewise.
        server: Its address, likewise.

    Raises:
        ConfigError: A file cannot be read, parts are missing, or a feature is not covered.
    """
    entry, source = user.entry, str(user.source)
    if entry.auth_provider is not None:
        raise ConfigError(
            source,
            f"{where}.auth-provider",
            "is not covered (kubectl removed it in 1.26); use the exec plug-in of your provider",
        )
    if entry.exec is not None:
        config = _exec_config(user, entry.exec, f"{where}.exec")
        if entry.exec.provide_cluster_info:
            config = _with_cluster(config, cluster, authorities, server)
        return ExecPlugin(config)
    authorization = _authorization(entry)
    chain, key = _certificate_sources(user, where)
    token = user.path(entry.token_file) if entry.token_file else None
    if isinstance(chain, Path) or isinstance(key, Path) or token is not None:
        files = Files(token, chain, key, authorization)
        for path, name in (
            (token, "tokenFile"),
            (chain, "client-certificate"),
            (key, "client-key"),
        ):
            if isinstance(path, Path):
                read(path, f"{source}: {where}.{name}")
        return files
    certificate = Certificate(chain, key) if chain and key else None
    return Fixed(Credential(authorization, certificate))


def _authorization(entry: UserEntry) -> str | None:
    if entry.token:
        return f"Bearer {entry.token}"
    if entry.username:
        pair = f"{entry.username}:{entry.password or ''}".encode()
        return f"Basic {base64.b64encode(pair).decode()}"
    return None


def _certificate_sources(
    user: Found[UserEntry], where: str
) -> tuple[bytes | Path | None, bytes | Path | None]:
    """Return chain and key, each as data, a file or None; data wins, as in kubectl."""
    entry = user.entry
    chain = _data_or_path(
        user, f"{where}.client-certificate", entry.client_certificate_data, entry.client_certificate
    )
    key = _data_or_path(user, f"{where}.client-key", entry.client_key_data, entry.client_key)
    if (chain is None) != (key is None):
        missing = "client-key" if key is None else "client-certificate"
        raise ConfigError(str(user.source), f"{where}.{missing}", "is missing beside its partner")
    return chain, key


def _data_or_path(
    user: Found[UserEntry], where: str, data: str | None, path: str | None
) -> bytes | Path | None:
    if data:
        return decode_base64(user.source, f"{where}-data", data)
    return user.path(path) if path else None


def _exec_config(user: Found[UserEntry], entry: ExecEntry, where: str) -> ExecConfig:
    source = str(user.source)
    if entry.api_version not in VERSIONS:
        raise ConfigError(
            source,
            f"{where}.apiVersion",
            f"{entry.api_version!r} is not covered; use {' or '.join(VERSIONS)}",
        )
    if entry.interactive_mode == "Always" and not sys.stdin.isatty():
        raise ConfigError(
            source, f"{where}.interactiveMode", "is Always, but there is no terminal to ask at"
        )
    command = entry.command
    if "/" in command:
        command = str(user.path(command))
    return ExecConfig(
        source=source,
        field=where,
        api_version=entry.api_version,
        command=command,
        args=tuple(entry.args or ()),
        env={variable.name: variable.value for variable in entry.env or ()},
        install_hint=entry.install_hint or "",
        interactive=entry.interactive_mode != "Never",
    )


def _with_cluster(
    config: ExecConfig, cluster: ClusterEntry, authorities: bytes | None, server: str
) -> ExecConfig:
    info: dict[str, object] = {"server": server}
    if authorities is not None:
        info["certificate-authority-data"] = base64.b64encode(authorities).decode()
    if cluster.insecure_skip_tls_verify:
        info["insecure-skip-tls-verify"] = True
    if cluster.tls_server_name:
        info["tls-server-name"] = cluster.tls_server_name
    if cluster.proxy_url:
        info["proxy-url"] = cluster.proxy_url
    for extension in cluster.extensions or ():
        if extension.get("name") == "client.authentication.k8s.io/exec":
            info["config"] = extension.get("extension")
    return msgspec.structs.replace(config, cluster=info)


def decode_base64(source: Path, where: str, text: str) -> bytes:
    """Decode a `-data` field.

    Raises:
        ConfigError: It is not base64.
    """
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ConfigError(str(source), where, f"is not base64: {error}") from error
