"""When a process of ours waits for a lease that another left behind."""

import datetime as dt

import pytest

from alnair.kube.lease import LeaseSpec
from alnair.local.leftover_leases import waiting

BEGAN = dt.datetime(2030, 1, 1, 12, 0, 30, tzinfo=dt.UTC).timestamp()


def test_a_lease_that_was_renewed_last_before_it_began_is_told_with_how_long_it_waits() -> None:
    spec = LeaseSpec("old_1", lease_duration_seconds=12, renew_time="2030-01-01T12:00:05.000000Z")
    assert waiting("alnair-scheduler", spec, BEGAN) == (
        "alnair-scheduler does not lead yet: old_1 holds the lease and last renewed it 25 s before"
        " this one began; without another renewal this one leads within 12 s"
    )


@pytest.mark.parametrize(
    "spec",
    [
        LeaseSpec(),
        LeaseSpec("", renew_time="2030-01-01T12:00:05.000000Z"),  # given back
        LeaseSpec("new_1", renew_time="2030-01-01T12:00:31.000000Z"),
    ],
)
def test_otherwise_nobody_waits(spec: LeaseSpec) -> None:
    assert not waiting("alnair-scheduler", spec, BEGAN)
