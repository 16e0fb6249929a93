"""The gate before a process's pages: what is kept of the API server's answers, and for how long.

Whom a real API server lets in is in tests/integration/scheduler/test_secure_serving.py.
"""

import asyncio
from typing import cast

from alnair.kube.client import Client
from alnair.kube.errors import ConnectionFailed
from alnair.serving.access import Access
from kit.reviews import Reviews


class Clock:
    """Time that passes when the test says so."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def gate(reviews: Reviews, clock: Clock) -> Access:
    return Access(cast("Client", reviews), clock=clock)


async def test_an_answer_of_either_kind_holds_for_ten_seconds_and_only_for_what_was_asked() -> None:
    reviews, clock = Reviews(), Clock()
    access = gate(reviews, clock)
    assert (await access.judge("t", "", "get", "/metrics")).status == 200
    assert (await access.judge("x", "", "get", "/metrics")).status == 401
    assert (await access.judge("t", "", "get", "/debug/snapshot")).status == 403
    assert (await access.judge("t", "", "head", "/metrics")).status == 200
    asked = len(reviews.asked)
    reviews.known, reviews.allowed = {"x": "ann"}, {("ann", "/debug/snapshot")}
    clock.now = 9.9
    assert (await access.judge("t", "", "get", "/metrics")).status == 200
    assert (await access.judge("x", "", "get", "/metrics")).status == 401
    assert len(reviews.asked) == asked
    clock.now = 10.1
    assert (await access.judge("t", "", "get", "/metrics")).status == 401
    assert (await access.judge("x", "", "get", "/debug/snapshot")).status == 200


async def test_many_that_ask_the_same_at_once_are_one_question() -> None:
    reviews = Reviews()
    reviews.open.clear()
    access = gate(reviews, Clock())
    waiting = [asyncio.create_task(access.judge("t", "", "get", "/metrics")) for _ in range(50)]
    await asyncio.sleep(0)
    waiting[0].cancel()  # who goes away takes no answer from the others
    reviews.open.set()
    answers = await asyncio.gather(*waiting[1:])
    assert {answer.status for answer in answers} == {200}
    assert reviews.asked == ["TokenReview", "SubjectAccessReview"]


async def test_strangers_fill_no_memory_and_ask_eight_questions_at_once_at_most() -> None:
    reviews = Reviews()
    access = gate(reviews, Clock())
    for number in range(2500):
        await access.judge(f"made-up-{number}", "", "get", "/metrics")
    assert len(access._kept) == 1000
    reviews.open.clear()
    reviews.asked.clear()
    waiting = [asyncio.create_task(access.judge(f"{n}", "", "get", "/")) for n in range(100)]
    for _ in range(10):
        await asyncio.sleep(0)
    assert len(reviews.asked) == 8
    reviews.open.set()
    assert {one.status for one in await asyncio.gather(*waiting)} == {401}


async def test_no_answer_lets_nobody_in_and_is_not_kept_and_one_dead_connection_is_borne() -> None:
    reviews = Reviews()
    access = gate(reviews, Clock())
    reviews.failures = [ConnectionFailed("it is gone"), ConnectionFailed("it is gone")]
    refused = await access.judge("t", "", "get", "/metrics")
    assert (refused.status, refused.text) == (
        503,
        "the API server cannot be asked who you are: it is gone; try again",
    )
    reviews.failures = [ConnectionFailed("it was kept too long")]
    assert (await access.judge("t", "", "get", "/metrics")).status == 200
