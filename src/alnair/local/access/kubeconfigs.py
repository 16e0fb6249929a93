"""Kubeconfig files, one per identity, that carry their certificates in them."""

import base64
import contextlib
from pathlib import Path

import yaml

from alnair.local.access.certificates import IDENTITIES, NODE_IDENTITIES, Pki
from alnair.local.layout import Layout, write_atomically


def write_all(layout: Layout, pki: Pki, port: int, *, real_node: bool = False) -> None:
    """Writes the kubeconfig of every identity, where it differs from the present file.

    A real node has the API server at the same loopback address in its own network.
    """
    for identity in (*IDENTITIES, *(NODE_IDENTITIES if real_node else ())):
        path = layout.kubeconfig(identity)
        content = _kubeconfig(layout.name, pki, identity, port)
        with contextlib.suppress(OSError):
            if path.read_bytes() == content:
                continue
        write_atomically(path, content)


def _kubeconfig(cluster: str, pki: Pki, identity: str, port: int) -> bytes:
    client = pki.client(identity)
    context = cluster if identity == "admin" else f"{identity}@{cluster}"
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {
                "name": cluster,
                "cluster": {
                    "server": f"https://127.0.0.1:{port}",
                    "certificate-authority-data": _base64(pki.ca.certificate),
                },
            }
        ],
        "users": [
            {
                "name": f"{identity}@{cluster}",
                "user": {
                    "client-certificate-data": _base64(client.certificate),
                    "client-key-data": _base64(client.key),
                },
            }
        ],
        "contexts": [
            {"name": context, "context": {"cluster": cluster, "user": f"{identity}@{cluster}"}}
        ],
        "current-context": context,
    }
    return yaml.safe_dump(document, sort_keys=False).encode()


def _base64(path: Path) -> str:
    return base64.b64encode(path.read_bytes()).decode()
