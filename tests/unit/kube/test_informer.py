"""What an informer makes of a server and a network that misbehave."""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from alnair.kube import informer
from alnair.kube.backoff import Backoff
from alnair.kube.client import Client
from alnair.kube.informer import Change, ChangeKind, Informer
from kit.fault_server import (
    THINGS,
    FaultServer,
    Thing,
    line,
    refuse,
    send,
    serving,
    silence,
)

ThingInformer = Informer[Thing, tuple[str, int]]


class Follower:
    """An informer at work, and what it told."""

    def __init__(self, client: Client, **options: object) -> None:
        self.changes: list[Change[tuple[str, int]]] = []
        self.heard = asyncio.Event()
        self.informer: ThingInformer = Informer(
            client,
            THINGS,
            lambda thing: (thing.metadata.uid, thing.value),
            self._on_change,
            backoff=Backoff(0.001, 0.002, lambda: 0.5),
            **options,
        )

    def _on_change(self, change: Change[tuple[str, int]]) -> None:
        self.changes.append(change)
        self.heard.set()

    @property
    def values(self) -> dict[tuple[str, str], int]:
        return {key: value for key, (_, value) in self.informer.items.items()}

    @property
    def told(self) -> list[tuple[str, str]]:
        return [(change.kind.name, change.key[1]) for change in self.changes]

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not condition():
                self.heard.clear()
                await self.heard.wait()


@asynccontextmanager
async def following(client: Client, **options: object) -> AsyncIterator[Follower]:
    follower = Follower(client, **options)
    task = asyncio.create_task(follower.informer.run())
    try:
        yield follower
    finally:
        task.cancel()
        await asyncio.wait([task])


async def test_the_first_list_is_added_then_synced_once(
    server: FaultServer, client: Client
) -> None:
    for name in "abc":
        await server.put(name, 1)
    async with following(client, page_size=2) as follower:
        await follower.informer.synced.wait()
        assert follower.told == [("ADDED", "a"), ("ADDED", "b"), ("ADDED", "c"), ("SYNCED", "")]
        assert follower.values == server.values


async def test_a_kind_that_may_be_missing_is_waited_for_a_little(
    server: FaultServer, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(informer, "OPTIONAL_SECONDS", 0.01)
    assert not await Follower(client).informer.known_soon()
    async with following(client) as follower:
        await follower.informer.synced.wait()
        assert await follower.informer.known_soon()


async def test_changes_bring_the_old_and_the_new_value(server: FaultServer, client: Client) -> None:
    async with following(client) as follower:
        await follower.informer.synced.wait()
        await server.put("a", 1)
        await server.put("a", 2)
        await server.delete("a")
        await follower.until(lambda: len(follower.changes) == 4)
        values = [
            (change.old and change.old[1], change.new and change.new[1])
            for change in follower.changes[1:]
        ]
        assert values == [(None, 1), (1, 2), (2, None)]
        assert follower.values == {}


async def test_an_object_whose_value_stays_equal_is_not_told(
    server: FaultServer, client: Client
) -> None:
    await server.put("a", 1)
    async with following(client) as follower:
        await follower.informer.synced.wait()
        await server.put("a", 1)
        await server.put("b", 1)
        await follower.until(lambda: ("n", "b") in follower.values)
        assert follower.told == [("ADDED", "a"), ("SYNCED", ""), ("ADDED", "b")]


async def test_after_410_in_the_stream_the_difference_is_delivered_deletions_first(
    server: FaultServer, client: Client
) -> None:
    for name in "abc":
        await server.put(name, 1)
    server.watch_faults.append(send(b""))
    async with following(client) as follower:
        await follower.informer.synced.wait()
        await server.delete("b")
        await server.put("c", 2)
        await server.put("d", 1)
        server.forget_history()
        await follower.until(lambda: follower.values == server.values)
        assert follower.told[4:] == [("DELETED", "b"), ("MODIFIED", "c"), ("ADDED", "d")]
        assert follower.informer.lists == 2
        assert follower.told.count(("SYNCED", "")) == 1


async def test_410_as_an_answer_to_the_watch_lists_again(
    server: FaultServer, client: Client
) -> None:
    server.watch_faults.append(refuse(410, "Gone"))
    async with following(client) as follower:
        await follower.informer.synced.wait()
        await server.put("a", 1)
        await follower.until(lambda: follower.values == server.values)
        assert follower.informer.lists == 2


async def test_an_object_made_anew_while_cut_off_is_deleted_and_added(
    server: FaultServer, client: Client
) -> None:
    await server.put("a", 1, uid="first")
    server.watch_faults.append(send(b""))
    async with following(client, identity=lambda value: value[0]) as follower:
        await follower.informer.synced.wait()
        await server.delete("a")
        await server.put("a", 1, uid="second")
        server.forget_history()
        await follower.until(lambda: len(follower.changes) == 4)
        assert follower.told[2:] == [("DELETED", "a"), ("ADDED", "a")]


async def test_a_stream_cut_in_half_a_line_resumes_and_loses_nothing(
    server: FaultServer, client: Client
) -> None:
    await server.put("a", 1)
    async with following(client) as follower:
        await follower.informer.synced.wait()
        listed = server.version
    server.version += 1
    whole = line("ADDED", server.make("b", 1))
    server.things["b"] = server.make("b", 1)
    server.version += 1
    server.things["c"] = server.make("c", 1)
    next_line = line("ADDED", server.things["c"])
    server.log += [(listed + 1, whole), (listed + 2, next_line)]
    server.watch_faults.append(send(whole + next_line[:30], after=0.1))
    async with following(client) as follower:
        follower.informer._version = str(listed)
        follower.informer.synced.set()
        await follower.until(lambda: set(follower.values) == {("n", "b"), ("n", "c")})
        versions = [query["resourceVersion"] for _, query in server.requests if "watch" in query]
        assert versions[-2:] == [str(listed), str(listed + 1)]
        assert follower.informer.lists == 0


async def test_429_on_the_watch_waits_as_long_as_the_server_says(
    server: FaultServer, client: Client
) -> None:
    server.watch_faults.append(refuse(429, "TooManyRequests", retry_after=1))
    async with following(client) as follower:
        await follower.informer.synced.wait()
        begin = asyncio.get_running_loop().time()
        await server.put("a", 1)
        await follower.until(lambda: follower.values == server.values)
        assert asyncio.get_running_loop().time() - begin >= 0.9
        assert follower.informer.lists == 1


async def test_429_and_errors_on_the_list_are_waited_out(
    server: FaultServer, client: Client
) -> None:
    server.list_faults += [
        refuse(429, "TooManyRequests", retry_after=0),
        refuse(500, "InternalError"),
        refuse(503, "ServiceUnavailable"),
        refuse(403, "Forbidden"),
        refuse(404, "NotFound"),
        send(b"{"),
    ]
    await server.put("a", 1)
    async with following(client) as follower:
        await follower.until(lambda: follower.values == server.values)
        assert not server.list_faults


async def test_nobody_waits_for_a_kind_that_is_not_served_nor_is_warned_of_it(
    server: FaultServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    server.list_faults += [refuse(404, "NotFound")] * 3
    await server.put("a", 1)
    async with following(client) as follower:
        async with asyncio.timeout(20):
            await follower.informer.known.wait()
        assert not follower.informer.synced.is_set()
        await follower.until(lambda: follower.values == server.values)
        assert follower.informer.synced.is_set()
    assert not caplog.records


async def test_a_garbage_line_resumes_and_in_the_same_place_again_lists(
    server: FaultServer, client: Client
) -> None:
    server.watch_faults += [send(b"<html>\n", then_cut=False)] * 2
    async with following(client) as follower:
        await follower.informer.synced.wait()
        await server.put("a", 1)
        await follower.until(lambda: follower.values == server.values)
        assert follower.informer.lists == 2


async def test_events_before_a_garbage_line_count(server: FaultServer, client: Client) -> None:
    server.things["a"] = server.make("a", 1)
    lines = line("MODIFIED", server.make("a", 5)) + b"}\n"
    server.watch_faults.append(send(lines, then_cut=False))
    async with following(client) as follower:
        await follower.until(lambda: follower.values == {("n", "a"): 5})
        assert follower.informer.lists == 1


async def test_a_silent_connection_is_given_up_and_resumed_without_a_warning(
    server: FaultServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    """A watch of a kind that never changes ends like that all the time."""
    server.watch_faults += [silence(), silence()]
    async with following(client, idle_timeout=0.5) as follower:
        await follower.informer.synced.wait()
        await server.put("a", 1)
        await follower.until(lambda: follower.values == server.values)
        assert follower.informer.lists == 1
        assert follower.informer.watches > 2
    assert [r.getMessage() for r in caplog.records if r.levelno >= logging.INFO] == []


async def test_a_server_that_ends_every_watch_at_once_is_asked_with_pauses(
    server: FaultServer, client: Client
) -> None:
    server.watch_faults += [send(then_cut=False)] * 5
    async with following(client) as follower:
        await follower.informer.synced.wait()
        await server.put("a", 1)
        await follower.until(lambda: follower.values == server.values)
        assert follower.informer._backoff._failures == 0


async def test_a_bookmark_moves_the_place_to_resume_from(
    server: FaultServer, client: Client
) -> None:
    async with following(client) as follower:
        await follower.informer.synced.wait()
        await server.tell_bookmark()
        marked = str(server.version)
        await server.put("a", 1)
        await follower.until(lambda: follower.values == server.values)
        assert follower.informer._version == str(int(marked) + 1)
    mark = line("BOOKMARK", {"metadata": {"resourceVersion": marked}})
    server.watch_faults.append(send(mark, then_cut=False))
    async with following(client) as follower:
        await follower.informer.synced.wait()
        await server.put("b", 1)
        await follower.until(lambda: follower.values == server.values)
        last = [query for _, query in server.requests if "watch" in query][-1]
        assert last["resourceVersion"] == marked
        assert last["allowWatchBookmarks"] == "true"


async def test_an_object_that_does_not_fit_counts_as_absent_and_stops_nobody(
    server: FaultServer, client: Client, caplog: pytest.LogCaptureFixture
) -> None:
    server.things["bad"] = server.make("bad", "no number")
    await server.put("good", 1)
    async with following(client) as follower:
        await follower.informer.synced.wait()
        assert follower.values == {("n", "good"): 1}
        await server.put("late", 1)
        server.version += 1
        await server._tell(line("MODIFIED", server.make("good", "no number")))
        await follower.until(lambda: follower.values == {("n", "late"): 1})
        assert follower.told[-1] == ("DELETED", "good")
    assert "n/bad does not fit our type" in caplog.text
    assert "$.object.value" in caplog.text


async def test_pages_that_expire_are_read_in_one_piece(server: FaultServer, client: Client) -> None:
    for name in "abcd":
        await server.put(name, 1)
    server.list_faults.append(_page)
    server.list_faults.append(refuse(410, "Expired"))
    async with following(client, page_size=2) as follower:
        await follower.until(lambda: follower.values == server.values)
        lists = [query for _, query in server.requests if "watch" not in query]
        assert [query.get("limit") for query in lists] == ["2", "2", None]


async def _page(server: FaultServer, request: object) -> object:
    return server.page(request)


async def test_what_changes_between_two_pages_is_not_lost(
    server: FaultServer, client: Client
) -> None:
    """All pages are of one moment: the watch goes on from there, and brings the rest."""

    async def change_then_page(server: FaultServer, request: object) -> object:
        await server.put("a", 2)  # it was on the page before
        await server.delete("b")  # which moves all that follow
        return server.page(request)

    for name in "abcd":
        await server.put(name, 1)
    server.list_faults += [_page, change_then_page]
    async with following(client, page_size=2) as follower:
        await follower.until(
            lambda: follower.values == {("n", "a"): 2, ("n", "c"): 1, ("n", "d"): 1}
        )
        check_story(follower.changes)
        assert follower.informer.lists == 1
        first = next(query for _, query in server.requests if "watch" in query)
        assert first["resourceVersion"] == "104"


async def test_an_exception_of_the_receiver_ends_the_informer(
    server: FaultServer, client: Client
) -> None:
    def fail(change: Change[int]) -> None:
        raise RuntimeError("receiver")

    informer = Informer(client, THINGS, lambda thing: thing.value, fail)
    with pytest.raises(RuntimeError, match="receiver"):
        await informer.run()


step = st.one_of(
    st.tuples(st.just("put"), st.sampled_from("abcde"), st.integers(0, 3)),
    st.tuples(st.just("delete"), st.sampled_from("abcde"), st.just(0)),
    st.tuples(st.just("bookmark"), st.just(""), st.just(0)),
    st.tuples(st.just("compact"), st.just(""), st.just(0)),
    st.tuples(st.just("pause"), st.just(""), st.just(0)),
)
fault = st.sampled_from(
    [
        send(b""),
        send(b'{"type":"ADD'),
        send(b"rubbish\n"),
        send(then_cut=False),
        refuse(410, "Gone"),
        refuse(429, "TooManyRequests", 0),
        refuse(503, "ServiceUnavailable"),
    ]
)


@settings(max_examples=40, deadline=None)
@given(st.lists(step, max_size=25), st.lists(fault, max_size=4), st.lists(fault, max_size=2))
def test_whatever_happens_the_copy_becomes_the_collection(
    steps: list[tuple[str, str, int]], watch_faults: list[object], list_faults: list[object]
) -> None:
    async def play() -> None:
        server = FaultServer()
        server.watch_faults.extend(watch_faults)
        server.list_faults.extend(list_faults)
        async with (
            serving(server),
            Client(server.connection) as client,
            following(client, page_size=2) as follower,
        ):
            for verb, name, value in steps:
                if verb == "put":
                    await server.put(name, value)
                elif verb == "delete" and name in server.things:
                    await server.delete(name)
                elif verb == "bookmark":
                    await server.tell_bookmark()
                elif verb == "compact":
                    server.forget_history()
                elif verb == "pause":
                    await asyncio.sleep(0.002)
            # The last change, which ends the wait, must be one that is told.
            await server.put("last", 1)
            await follower.until(lambda: follower.values == server.values)
            check_story(follower.changes)

    asyncio.run(play())


def check_story(changes: list[Change[tuple[str, int]]]) -> None:
    """Each change must follow from what was told before."""
    told: dict[tuple[str, str], object] = {}
    for change in changes:
        if change.kind is ChangeKind.SYNCED:
            continue
        assert told.get(change.key) == change.old
        assert change.old != change.new
        if change.kind is ChangeKind.DELETED:
            del told[change.key]
        else:
            assert (change.kind is ChangeKind.ADDED) == (change.key not in told)
            told[change.key] = change.new
