"""The agent's way to the API server, if it was told of one."""

import contextlib

from alnair.kube.access import client_config
from alnair.kube.client import Client
from alnair.model import names
from alnair.processes.agent.settings import Settings


async def opened(settings: Settings, stack: contextlib.AsyncExitStack) -> Client | None:
    """Return a client that is open as long as the stack; None: no cluster is to hear of it."""
    if settings.in_cluster:
        found = client_config.in_cluster()
    elif settings.kubeconfig is not None:
        found = client_config.load(settings.kubeconfig)
    else:
        return None
    return await stack.enter_async_context(Client(found, user_agent=names.AGENT))
