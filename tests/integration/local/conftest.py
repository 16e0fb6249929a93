"""What the tests of local clusters share."""

from collections.abc import Awaitable, Callable

import pytest

from alnair.kube.client import Client
from alnair.kube.resources import SERVICE_ACCOUNTS
from kit.live.scheduler_process import eventually


@pytest.fixture
async def namespace(client: Client, make_namespace: Callable[[], Awaitable[str]]) -> str:
    """A namespace in which pods can be made."""
    name = await make_namespace()

    async def has_account() -> bool:
        return bool((await client.list(SERVICE_ACCOUNTS, name)).items)

    await eventually(has_account)
    return name
