"""Clients that act as somebody else, as `kubectl --as` does."""

from collections.abc import Mapping
from dataclasses import replace

from alnair.kube.access import client_config
from alnair.kube.client import Client
from alnair.local.controlplane import LocalCluster


def client_as(
    cluster: LocalCluster, user: str, *groups: str, extra: Mapping[str, str] | None = None
) -> Client:
    """Return a client of a user, with whatever rights the user has."""
    headers: dict[str, str | list[str]] = {
        "Impersonate-User": user,
        "Impersonate-Group": ["system:authenticated", *groups],
    }
    # No header's name has a slash, as authentication.kubernetes.io/node-name does.
    for key, value in (extra or {}).items():
        headers[f"Impersonate-Extra-{key.replace('/', '%2F')}"] = value
    connection = client_config.load(cluster.kubeconfig())
    return Client(replace(connection, headers=headers))
