"""Where a process says that it serves: its URL, or, of a pod, its path at the API server."""

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit

from alnair.model import names


def published(url: str, environ: Mapping[str, str]) -> str:
    """Return where others reach what a process serves; empty: nobody does.

    Few reach the address of a pod, and nobody can verify a certificate for it; whoever may, reaches
    the pod through the API server.

    Args:
        url: Where it listens, such as https://0.0.0.0:9465.
        environ: A pod has POD_NAME (and POD_NAMESPACE) in it.
    """
    pod = environ.get("POD_NAME", "")
    if not pod:
        return url
    parts = urlsplit(url)
    if ipaddress.ip_address(parts.hostname or "").is_loopback:
        return ""
    namespace = environ.get("POD_NAMESPACE") or names.NAMESPACE
    return f"/api/v1/namespaces/{namespace}/pods/{parts.scheme}:{pod}:{parts.port}/proxy"
