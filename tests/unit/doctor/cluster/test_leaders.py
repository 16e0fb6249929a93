"""Leaders are judged by when their leases were read."""

import time
from datetime import UTC, datetime
from typing import Any

import pytest

from alnair.doctor.cluster import leaders
from alnair.doctor.cluster.look import ClusterLook
from alnair.doctor.finding import Level
from alnair.kube.resources import Manifest
from alnair.model import names


class Leases:
    """A client of a cluster with the leases of both leaders."""

    def __init__(self, renewed: float) -> None:
        when = datetime.fromtimestamp(renewed, UTC).isoformat()
        spec = {"holderIdentity": "a", "leaseDurationSeconds": 12, "renewTime": when}
        self.items: list[Manifest] = [
            {"metadata": {"name": name, "namespace": names.NAMESPACE}, "spec": spec}
            for name in (names.SCHEDULER, names.CONTROLLER)
        ]

    async def list(self, *_: Any) -> "Leases":
        return self


async def test_a_lease_does_not_grow_old_while_other_checks_take_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    began = time.time()
    look = ClusterLook(Leases(began - 5.0))  # type: ignore[arg-type]
    await look.leases()
    monkeypatch.setattr(time, "time", lambda: began + 60.0)
    assert {one.level for one in await leaders.leaders(look)} == {Level.OK}


async def test_a_lease_that_was_old_when_it_was_read_is_an_error() -> None:
    look = ClusterLook(Leases(time.time() - 60.0))  # type: ignore[arg-type]
    assert {one.level for one in await leaders.leaders(look)} == {Level.ERROR}
