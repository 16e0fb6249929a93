"""Namespaces that a user names: which of them there is not."""

import contextlib
from typing import Any

import msgspec

from alnair.kube.client import Client
from alnair.kube.errors import Forbidden, NotFound
from alnair.kube.resources import NAMESPACES
from alnair.model.near_names import near


class _Named(msgspec.Struct):
    metadata: dict[str, Any]


async def unknown(client: Client, namespace: str) -> str:
    """Return that there is no such namespace, and which ones are alike; empty if there is one.

    Empty, too, for who may not read namespaces: the API server tells him when he uses it.
    """
    try:
        await client.get(NAMESPACES, namespace)
    except Forbidden:
        return ""
    except NotFound:
        text = f"there is no namespace {namespace}"
        with contextlib.suppress(Forbidden):
            listed = (await client.list(NAMESPACES.typed(_Named))).items
            if alike := near(namespace, [one.metadata["name"] for one in listed]):
                text += f": did you mean {', '.join(alike)}?"
        return text
    return ""
