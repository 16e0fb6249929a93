"""Leader election by a clock that passes while the API server answers."""

import asyncio
from typing import Any

import pytest

from alnair.kube.errors import LeadershipLost, NotFound
from alnair.kube.lease import LeaderElector


class SlowServer:
    """A server with one lease; so many seconds pass while it answers a renewal."""

    def __init__(self, seconds: float) -> None:
        self.now = 100.0
        self.renewals = 0
        self._seconds = seconds

    async def get(self, *_: object) -> Any:
        raise NotFound(404, "NotFound", "there is none")

    async def create(self, _: object, lease: Any) -> Any:
        return lease

    async def replace(self, _: object, lease: Any) -> Any:
        self.renewals += 1
        self.now += self._seconds
        return lease


def elector(server: Any) -> LeaderElector:
    return LeaderElector(
        server,
        namespace="default",
        name="lease",
        identity="we",
        lease_duration=3,
        renew_deadline=2.0,
        retry_period=0.001,
        clock=lambda: server.now,
    )


async def test_a_renewal_that_comes_after_the_deadline_ends_the_work_though_it_succeeds() -> None:
    server = SlowServer(2.5)
    with pytest.raises(LeadershipLost, match="renewed after the deadline"):
        await asyncio.wait_for(elector(server).run(asyncio.Event().wait), 30)


async def test_a_renewal_within_the_deadline_goes_unnoticed() -> None:
    server = SlowServer(0.5)

    async def work() -> None:
        while server.renewals < 20:
            assert one.is_leader
            await asyncio.sleep(0)

    one = elector(server)
    await asyncio.wait_for(one.run(work), 30)


async def test_what_the_last_leader_said_is_known_to_the_next_one() -> None:
    class Server(SlowServer):
        async def get(self, *_: object) -> Any:
            spec = {"holderIdentity": ""}
            return {"metadata": {"annotations": {"learned": "much", "url": "theirs"}}, "spec": spec}

    server = Server(0.0)
    one = LeaderElector(
        server,  # type: ignore[arg-type]
        namespace="default",
        name="lease",
        identity="we",
        annotations={"url": "ours"},
    )
    assert one.annotations == {}
    found: list[Any] = []

    async def work() -> None:
        found.append(one.annotations)

    await asyncio.wait_for(one.run(work), 30)
    assert found == [{"learned": "much", "url": "ours"}]


async def test_a_lease_that_is_renewed_is_left_to_its_holder_and_taken_when_it_is_not() -> None:
    class Held(SlowServer):
        """Another one's lease, which is renewed for ten times its duration."""

        looks = 0

        async def get(self, *_: object) -> Any:
            self.looks += 1
            self.now += 1.0
            spec = {"holderIdentity": "another", "leaseDurationSeconds": 3}
            renewed = {"renewTime": f"{min(self.looks, 30)}"}
            return {"metadata": {}, "spec": {**spec, **renewed}}

    server = Held(0.0)

    async def work() -> None:
        assert server.looks == 33, "3 s after the last renewal"

    await asyncio.wait_for(elector(server).run(work), 30)


async def test_what_is_done_while_waiting_has_ended_before_the_work_begins() -> None:
    story: list[str] = []
    begun = asyncio.Event()

    async def stand_by() -> None:
        story.append("stands by")
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            story.append("has ended")

    async def work() -> None:
        story.append("works")

    class Taken(SlowServer):
        """The lease is refused until standing by has begun."""

        async def create(self, _: object, lease: Any) -> Any:
            await begun.wait()
            return lease

    await asyncio.wait_for(elector(Taken(0.0)).run(work, stand_by=stand_by), 30)
    assert story == ["stands by", "has ended", "works"]


async def test_a_fault_while_waiting_ends_it() -> None:
    async def fails() -> None:
        raise RuntimeError("standing by")

    class Busy(SlowServer):
        async def get(self, *_: object) -> Any:
            await asyncio.Event().wait()

    with pytest.raises(RuntimeError, match="standing by"):
        await asyncio.wait_for(elector(Busy(0.0)).run(fails, stand_by=fails), 30)


@pytest.mark.parametrize("stands_by", [False, True])
@pytest.mark.parametrize("answered", [False, True])
async def test_who_is_stopped_while_it_gets_the_lease_gives_it_back(
    answered: bool, stands_by: bool
) -> None:
    class Created(SlowServer):
        """The lease is created at once, and the answer is on its way for a while."""

        holder = ""

        async def create(self, _: object, lease: Any) -> Any:
            self.holder = lease["spec"]["holderIdentity"]
            created.set()
            await asyncio.sleep(0 if answered else 0.05)
            return lease

        async def replace(self, _: object, lease: Any) -> Any:
            self.holder = lease["spec"]["holderIdentity"]
            return lease

    async def stand_by() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            # It is still ending when the answer is there.
            await asyncio.sleep(0.05)

    async def never() -> None:
        raise AssertionError("no work begins when all ends")

    created = asyncio.Event()
    server = Created(0.0)
    run = asyncio.create_task(elector(server).run(never, stand_by=stand_by if stands_by else None))
    await created.wait()
    assert server.holder == "we"
    if answered and stands_by:
        await asyncio.sleep(0.01)
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    assert server.holder == ""
