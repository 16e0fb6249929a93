"""From what a user has (a kubeconfig, or the files in a pod) to a `Connection`.

The order is kubectl's: a path given by hand, the list in $KUBECONFIG, ~/.kube/config, and then the
service account of the pod we run in. Not covered, and said so when met: `auth-provider` (removed
from kubectl in 1.26) and SOCKS proxies.
"""

import os
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import getproxies, proxy_bypass

from alnair.kube.access.connection import Connection
from alnair.kube.access.credentials import Files, read
from alnair.kube.access.kubeconfig import ClusterEntry, Found, Kubeconfig, UserEntry, merge
from alnair.kube.access.kubeconfig_users import credentials_of, decode_base64, impersonation
from alnair.kube.errors import ConfigError

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
        credentials=credentials_of(
            user, f"users[{found.entry.user}].user", cluster.entry, authorities, server
        ),
        authorities=authorities,
        insecure=cluster.entry.insecure_skip_tls_verify,
        tls_server_name=cluster.entry.tls_server_name,
        proxy=_proxy(cluster, where, server),
        headers=impersonation(user.entry),
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
        return decode_base64(
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
