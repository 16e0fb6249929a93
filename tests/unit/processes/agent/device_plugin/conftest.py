from collections.abc import AsyncIterator

import pytest

from kit.plugin_node import Node, plugin_node


@pytest.fixture
async def node() -> AsyncIterator[Node]:
    async with plugin_node() as found:
        yield found
