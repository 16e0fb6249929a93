"""The controller is asked for its history, as far as the cluster says which one leads."""

import pytest

from alnair.kube.access.connection import Connection
from alnair.kube.client import Client
from alnair.kube.errors import ConnectionFailed
from alnair.live import history_source


async def test_a_cluster_that_does_not_answer_is_not_one_without_a_controller() -> None:
    async with Client(Connection("http://127.0.0.1:1")) as client:
        with pytest.raises(ConnectionFailed, match="leases/alnair-controller"):
            await history_source.jobs(client, {}, dict)
