"""The kit's wait for something: what it tells when that does not come."""

import pytest

from kit.live.scheduler_process import eventually


async def test_a_wait_that_is_over_tells_how_it_is_then() -> None:
    wrong: list[str] = []

    async def never() -> bool:
        wrong[:] = ["job-07 is Running"]
        return False

    with pytest.raises(pytest.fail.Exception, match=r"not within 0 s: .*job-07 is Running"):
        await eventually(never, 0.0, lambda: wrong)
    with pytest.raises(pytest.fail.Exception, match="not within 0 s: pods are gone"):
        await eventually(never, 0.0, "pods are gone")


async def test_what_holds_is_not_waited_for() -> None:
    async def at_once() -> bool:
        return True

    await eventually(at_once, 0.0)
