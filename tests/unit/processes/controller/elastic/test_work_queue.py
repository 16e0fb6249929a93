"""Each key once, and by one at a time."""

import asyncio

from alnair.processes.controller.elastic.work_queue import WorkQueue

A, B = ("Kind", "space", "a"), ("Kind", "space", "b")


async def test_keys_come_in_their_order_and_once_however_often_they_are_named() -> None:
    queue = WorkQueue()
    for key in (A, B, A):
        queue.add(key)
    assert [(await queue.take())[0], (await queue.take())[0]] == [A, B]
    assert len(queue) == 0


async def test_who_is_named_while_somebody_works_on_it_comes_again_afterwards() -> None:
    queue = WorkQueue()
    queue.add(A)
    await queue.take()
    queue.add(A)
    queue.add(B)
    assert (await queue.take())[0] == B, "nobody else works on it meanwhile"
    queue.done(A)
    assert (await queue.take())[0] == A
    queue.done(A)
    assert len(queue) == 0


async def test_a_key_that_rests_comes_after_its_rest() -> None:
    queue = WorkQueue()
    queue.add(A)
    await queue.take()
    queue.done(A, 0.01)
    queue.add(A)
    taking = asyncio.create_task(queue.take())
    await asyncio.sleep(0)
    assert not taking.done()
    assert (await taking)[0] == A


async def test_of_two_times_the_last_word_counts_and_none_after_the_end() -> None:
    queue = WorkQueue()
    queue.add_at(A, 0.0)
    queue.add_at(A, 3600.0)
    queue.add_at(B, 0.0)
    assert (await queue.take())[0] == B
    queue.close()
    await asyncio.sleep(0.01)
    assert len(queue) == 0


async def test_new_jobs_go_before_others_in_their_order() -> None:
    new = [("Kind", "space", name) for name in "xyz"]
    queue = WorkQueue(is_first=lambda key: key in new)
    for key in (A, new[0], B, new[1], new[2]):
        queue.add(key)
    assert [(await queue.take())[0] for _ in range(5)] == [*new, A, B]
