"""From what a user has (a kubeconfig, or the files in a pod) to a `Connection`.

The order is kubectl's: a path given by hand, the list in $KUBECONFIG, ~/.kube/config, and then the
service account of the pod we run in. Not covered, and said so when met: `auth-provider` (removed
from kubectl in 1.26) and SOCKS proxies.
"""

import base64
import binascii
import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from alnair.kube.connection import Connection
from alnair.kube.credentials import Certificate, Credential, Credentials, Files, Fixed, read
from alnair.kube.errors import ConfigError
from alnair.kube.execplugin import VERSIONS, ExecConfig, ExecPlugin
from alnair.kube.kubeconfig import ClusterEntry, ExecEntry, Found, Kubeconfig, UserEntry, merge

#: Where the kubelet mounts a service account.
SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_LOOPBACK = ("localhost", "127.0.0.1", "::1")


def load(kubeconfig: Path | str | None = None, context: str | None = None) -> Connection:
    """Find the cluster that the user means.

    Args:
        kubeconfig: A file to use instead of all that the environment offers.
        context: A context's name, None for the current one.

    Raises:
        ConfigError: Nothing is configured, or what is configured cannot be used; says file, field
            and fix.
    """
    if kubeconfig is not None:
        return from_kubeconfig(merge([Path(kubeconfig).expanduser()]), context)
    listed = os.environ.get("KUBECONFIG", "")
    names = [name for name in listed.split(os.pathsep) if name]
    candidates = [Path(name) for name in names] if names else [Path.home() / ".kube" / "config"]
    paths = [path for path in candidates if path.exists()]
    if paths:
        return from_kubeconfig(merge(paths), context)
    if context is None and os.environ.get("KUBERNETES_SERVICE_HOST"):
        return in_cluster()
    where = listed if names else str(candidates[0])
    raise ConfigError(
        where,
        "",
        "no kubeconfig there and no service account of a pod; give --kubeconfig, set KUBECONFIG,"
        " or start a local cluster with 'alnair up'",
    )


def in_cluster(
    folder: Path = SERVICE_ACCOUNT, environ: Mapping[str, str] = os.environ
) -> Connection:
    """Use the service account of the pod that this process runs in.

    Raises:
        ConfigError: This is no pod, or its service account is not mounted.
    """
    host, port = environ.get("KUBERNETES_SERVICE_HOST"), environ.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise ConfigError(
            "KUBERNETES_SERVICE_HOST", "", "is not set, so this is not a pod; give a kubeconfig"
        )
    if ":" in host:
        host = f"[{host}]"
    token = folder / "token"
    read(token, "automountServiceAccountToken")
    namespace = folder / "namespace"
    return Connection(
        server=f"https://{host}:{port}",
        credentials=Files(token=token),
        authorities=read(folder / "ca.crt", "automountServiceAccountToken"),
        namespace=namespace.read_text().strip() if namespace.exists() else "default",
        context="in-cluster",
        source=str(folder),
    )


def from_kubeconfig(config: Kubeconfig, context: str | None = None) -> Connection:
    """Resolve one context of a kubeconfig.

    Raises:
        ConfigError: A name leads nowhere, a file is missing, or a feature is not covered.
    """
    files = ", ".join(str(path) for path in config.sources)
    name = context or config.current_context
    known = ", ".join(sorted(config.contexts)) or "none"
    if not name:
        raise ConfigError(files, "current-context", f"is empty; choose one of: {known}")
    if name not in config.contexts:
        raise ConfigError(files, "contexts", f"there is no context {name!r}; there are: {known}")
    found = config.contexts[name]
    cluster = config.clusters.get(found.entry.cluster)
    if cluster is None:
        raise ConfigError(
            str(found.source),
            f"contexts[{name}].context.cluster",
            f"there is no cluster {found.entry.cluster!r}",
        )
    if found.entry.user and found.entry.user not in config.users:
        raise ConfigError(
            str(found.source),
            f"contexts[{name}].context.user",
            f"there is no user {found.entry.user!r}",
        )
    user = config.users.get(found.entry.user, Found(found.source, UserEntry()))
    where = f"clusters[{found.entry.cluster}].cluster"
    server = _server(cluster, where)
    authorities = _authorities(cluster, where)
    return Connection(
        server=server,
        credentials=_credentials(
            user, f"users[{found.entry.user}].user", cluster.entry, authorities, server
        ),
        authorities=authorities,
        insecure=cluster.entry.insecure_skip_tls_verify,
        tls_server_name=cluster.entry.tls_server_name,
        proxy=_proxy(cluster, where, server),
        headers=_impersonation(user.entry),
        namespace=found.entry.namespace or "default",
        context=name,
        source=str(cluster.source),
    )


def _server(cluster: Found[ClusterEntry], where: str) -> str:
    server = cluster.entry.server
    if not server:
        raise ConfigError(str(cluster.source), f"{where}.server", "is missing")
    if "://" not in server:
        server = f"https://{server}"
    parts = urlsplit(server)
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise ConfigError(
            str(cluster.source), f"{where}.server", f"{server!r} is no http(s) address"
        )
    return server.rstrip("/")


def _authorities(cluster: Found[ClusterEntry], where: str) -> bytes | None:
    entry = cluster.entry
    given = bool(entry.certificate_authority_data or entry.certificate_authority)
    if given and entry.insecure_skip_tls_verify:
        raise ConfigError(
            str(cluster.source),
            f"{where}.insecure-skip-tls-verify",
            "contradicts the certificate-authority beside it; remove one of them",
        )
    if entry.certificate_authority_data:
        return _base64(
            cluster.source, f"{where}.certificate-authority-data", entry.certificate_authority_data
        )
    if entry.certificate_authority:
        return read(
            cluster.path(entry.certificate_authority),
            f"{cluster.source}: {where}.certificate-authority",
        )
    return None


def _proxy(cluster: Found[ClusterEntry], where: str, server: str) -> str | None:
    proxy = cluster.entry.proxy_url
    if proxy:
        if urlsplit(proxy).scheme not in ("http", "https"):
            raise ConfigError(
                str(cluster.source),
                f"{where}.proxy-url",
                f"{proxy!r}: only http and https proxies are covered",
            )
        return proxy
    parts = urlsplit(server)
    # As Go does: a loopback address never goes through the environment's proxy.
    if parts.hostname in _LOOPBACK or proxy_bypass(parts.hostname or ""):
        return None
    return getproxies().get(parts.scheme)


def _impersonation(user: UserEntry) -> dict[str, str | list[str]]:
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


def _credentials(
    user: Found[UserEntry],
    where: str,
    cluster: ClusterEntry,
    authorities: bytes | None,
    server: str,
) -> Credentials:
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
        return _base64(user.source, f"{where}-data", data)
    return user.path(path) if path else None


def _exec_config(user: Found[UserEntry], entry: ExecEntry, where: str) -> ExecConfig:
    source = str(user.source)
    if entry.api_version not in VERSIONS:
        raise ConfigError(
            source,
            f"{where}.apiVersion",
            f"{entry.api_version!r} is not covered; use {' or '.join(VERSIONS)}",
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
    return ExecConfig(
        config.source,
        config.field,
        config.api_version,
        config.command,
        config.args,
        config.env,
        config.install_hint,
        config.interactive,
        info,
    )


def _base64(source: Path, where: str, text: str) -> bytes:
    try:
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise ConfigError(str(source), where, f"is not base64: {error}") from error
