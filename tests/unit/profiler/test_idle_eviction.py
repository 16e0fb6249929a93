"""Who is told and evicted for idle GPUs: only who asked for it."""

import pytest

from alnair.profiler.idle_eviction import IdlePod, idle_eviction


@pytest.mark.parametrize(
    ("pod", "namespace", "warned", "decided"),
    [
        ({}, "", None, "keep"),  # nobody asked
        ({"choice": "enabled"}, "", None, "warn"),
        ({}, "enabled", None, "warn"),
        ({"choice": "never"}, "enabled", None, "keep"),
        ({"reclaimable": "never"}, "enabled", None, "keep"),
        ({"idle_since": 0.0}, "enabled", None, "keep"),  # it is not idle, or not known
        ({"idle_since": 9500.0}, "enabled", None, "keep"),  # not for so long
        ({}, "enabled", 9700.0, "wait"),
        ({}, "enabled", 9300.0, "evict"),
    ],
)
def test_the_pod_goes_before_its_namespace_and_a_warning_before_the_eviction(
    pod: dict[str, object], namespace: str, warned: float | None, decided: str
) -> None:
    made = IdlePod(**{"uid": "u", "namespace": "n", "name": "p", "idle_since": 1000.0, **pod})  # type: ignore[arg-type]
    assert (
        idle_eviction(
            made, of_namespace=namespace, warned=warned, now=10_000.0, after=3600.0, grace=600.0
        )
        == decided
    )
