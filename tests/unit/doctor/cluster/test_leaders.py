"""Leaders are judged by when their leases were read."""

import time
from datetime import UTC, datetime
from typing import Any, NamedTuple

import pytest

from alnair.doctor.cluster import leaders
from alnair.doctor.cluster.look import ClusterLook
from alnair.doctor.finding import Level
from alnair.kube.resources import Manifest, Resource
from alnair.model import names


class Listed(NamedTuple):
    """What a client answers."""

    items: list[Manifest]


class Leases:
    """A client of a cluster with the leases of both leaders."""

    def __init__(self, renewed: float) -> None:
        when = datetime.fromtimestamp(renewed, UTC).isoformat()
        spec = {"holderIdentity": "a", "leaseDurationSeconds": 12, "renewTime": when}
        leases: list[Manifest] = [
            {"metadata": {"name": name, "namespace": names.NAMESPACE}, "spec": dict(spec)}
            for name in (names.SCHEDULER, names.CONTROLLER)
        ]
        self.objects = {"Lease": leases}

    async def list(self, kind: Resource[Any], *_: Any, **__: Any) -> Listed:
        return Listed(self.objects.get(kind.kind, []))


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


async def test_why_the_pods_of_who_does_not_lead_are_not_ready_is_told() -> None:
    client = Leases(time.time())
    lease = client.objects["Lease"][1]
    lease["spec"]["holderIdentity"] = ""
    meta = {"name": names.CONTROLLER, "labels": {"app.kubernetes.io/component": "controller"}}
    template = {"spec": {"containers": [{"name": "controller", "image": "alnair:1"}]}}
    spec = {"replicas": 1, "template": template}
    client.objects["Deployment"] = [{"metadata": meta, "spec": spec}]
    why = "pod has unbound immediate PersistentVolumeClaims"
    waits = {"type": "PodScheduled", "status": "False", "message": why}
    pod = {"metadata": meta | {"name": "alnair-controller-x"}, "spec": template["spec"]}
    client.objects["Pod"] = [pod | {"status": {"conditions": [waits]}}]
    found = await leaders.leaders(ClusterLook(client))  # type: ignore[arg-type]
    assert [one.level for one in found] == [Level.OK, Level.ERROR]
    assert found[1].what == (
        "no controller leads: the last one gave its lease back;"
        f" 0 of 1 ready: alnair-controller-x: {why}"
    )
    client.objects.pop("Deployment")
    found = await leaders.leaders(ClusterLook(client))  # type: ignore[arg-type]
    assert found[1].what == "no controller leads: the last one gave its lease back"
