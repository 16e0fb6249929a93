"""Carries out what a migration does to a training job's workers; all of it can be repeated."""

from alnair.elastic.desired import Desired
from alnair.kube.client import Client
from alnair.kube.errors import Conflict, NotFound
from alnair.kube.resources import STATEFUL_SETS


async def carry_out(client: Client, namespace: str, done: Desired) -> None:
    """Keep new workers away from nodes, and have those that shall leave them go.

    Raises:
        TooManyRequests: A disruption budget keeps a worker for now.
        KubeError: The API server refuses something.
    """
    if done.retemplate is not None:
        name, patch = done.retemplate.name, done.retemplate.patch
        await client.merge_patch(STATEFUL_SETS, name, patch, namespace)
    for name, uid in done.evict:
        try:
            await client.evict(namespace, name, uid)
        except (NotFound, Conflict):
            continue  # it is gone, and another one may have its name
