"""Which containers of a pod start first, and which keep running."""

import msgspec

from alnair.kube.objects import wire
from alnair.kube.objects.start_order import in_start_order, running_together

POD = msgspec.convert(
    {
        "initContainers": [
            {"name": "proxy", "restartPolicy": "Always"},
            {"name": "fetch"},
            {"name": "odd", "restartPolicy": "Never"},
        ],
        "containers": [{"name": "main"}, {"name": "other", "restartPolicy": "Always"}],
    },
    wire.PodSpecWire,
)


def test_init_containers_start_first_and_those_restarted_always_are_sidecars() -> None:
    assert [(c.name, init, sidecar) for c, init, sidecar in in_start_order(POD)] == [
        ("proxy", True, True),
        ("fetch", True, False),
        ("odd", True, False),
        ("main", False, False),
        ("other", False, False),
    ]
    assert list(in_start_order(wire.PodSpecWire())) == []


def test_sidecars_and_containers_run_together() -> None:
    assert [c.name for c in running_together(POD)] == ["proxy", "main", "other"]
