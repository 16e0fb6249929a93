"""Leader election on a Lease, with client-go's meaning.

Only our own clock is trusted: a lease counts as expired when *we* have not seen it change for its
duration. Every write is guarded by the resourceVersion, so of two candidates one wins. The leader
stops acting at `deadline`, which lies before the moment at which any other can take over:

    request sent ── deadline = sent + renew_deadline ── others wait lease_duration from when they
                                                         saw the write, which is later than `sent`
"""

import asyncio
import datetime as dt
import logging
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import msgspec

from alnair.kube.client import Client
from alnair.kube.errors import (
    AlreadyExists,
    ApiError,
    Conflict,
    ConnectionFailed,
    KubeError,
    LeadershipLost,
    NotFound,
)
from alnair.kube.lease_timings import LEASE_DURATION, RENEW_DEADLINE, RETRY_PERIOD
from alnair.kube.resources import LEASES, Manifest

#: Seconds that a graceful release may take; after it the lease simply expires.
RELEASE_PATIENCE = 3.0

_log = logging.getLogger(__name__)
_NEVER = float("-inf")


class LeaseSpec(msgspec.Struct, frozen=True, rename="camel"):
    """`spec` of a Lease, as far as election reads it."""

    holder_identity: str | None = None
    lease_duration_seconds: int | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: int | None = None


def utc_now() -> dt.datetime:
    """Return the wall clock; it is written into the lease for people and never compared."""
    return dt.datetime.now(dt.UTC)


class LeaderElector:
    """One candidate for one lease.

    Args:
        client: An open client.
        namespace: Where the lease is.
        name: Its name.
        identity: Ours; must be unique among the candidates.
        annotations: Written into the lease while we hold it, such as where to reach us; if a
            function, asked at each renewal.
        lease_duration: Whole seconds without a renewal after which others may take over.
        renew_deadline: Seconds after the last renewal at which we stop acting; less than
            `lease_duration`. The difference is the margin for slow requests and stopped processes.
        retry_period: Seconds between attempts.
        clock: Monotonic seconds.
        now: Wall clock for the stamps.
        jitter: Numbers in [0, 1) that spread the candidates' attempts.

    Attributes:
        deadline: By `clock`, when we must have stopped acting; minus infinity if we do not lead.
        leader: The identity that was last seen to hold the lease, "" for none.
    """

    def __init__(
        self,
        client: Client,
        *,
        namespace: str,
        name: str,
        identity: str,
        annotations: Mapping[str, str] | Callable[[], Mapping[str, str]] | None = None,
        lease_duration: int = LEASE_DURATION,
        renew_deadline: float = RENEW_DEADLINE,
        retry_period: float = RETRY_PERIOD,
        clock: Callable[[], float] = time.monotonic,
        now: Callable[[], dt.datetime] = utc_now,
        jitter: Callable[[], float] = random.random,
    ) -> None:
        if not identity:
            raise ValueError("a candidate needs an identity")
        if not lease_duration > renew_deadline > retry_period > 0:
            raise ValueError("it must be lease_duration > renew_deadline > retry_period > 0")
        self._client = client
        self._namespace = namespace
        self._name = name
        self._identity = identity
        self._annotations = annotations if callable(annotations) else lambda: annotations or {}
        self._lease_duration = lease_duration
        self._renew_deadline = renew_deadline
        self._retry_period = retry_period
        self._clock = clock
        self._now = now
        self._jitter = jitter
        self._observed: Manifest | None = None
        self._spec = LeaseSpec()
        self._observed_at = _NEVER
        #: Whether a write is on its way, of which nobody knows yet what came.
        self._writes = False
        self.deadline = _NEVER

    @property
    def leader(self) -> str:
        """The identity that was last seen to hold the lease, "" for none."""
        return self._spec.holder_identity or ""

    @property
    def transitions(self) -> int:
        """How often the lease had changed hands when it was last seen."""
        return self._spec.lease_transitions or 0

    @property
    def annotations(self) -> Mapping[str, str]:
        """What the lease said when it was last seen, also of leaders before."""
        metadata = self._observed["metadata"] if self._observed is not None else {}
        return metadata.get("annotations") or {}

    @property
    def is_leader(self) -> bool:
        """Whether we may act at this very moment."""
        return self._clock() < self.deadline

    async def run(
        self,
        on_started: Callable[[], Awaitable[None]],
        stand_by: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Wait to be elected, then do the leader's work until it ends or leadership does.

        Whatever ends it, the work is cancelled and awaited first, then the lease is given back if
        it is ours, so that the next leader starts at once.

        Args:
            on_started: The work. Its end, or its exception, is the end of `run`.
            stand_by: Done while we wait; cancelled and awaited before the work begins.

        Raises:
            LeadershipLost: The lease could not be renewed in time, or another took it.
        """
        try:
            await self._wait(stand_by)
            await self._lead(on_started)
        finally:
            is_ours = self.is_leader
            self.deadline = _NEVER
            if is_ours:
                await self._release()

    async def run_again_and_again(
        self,
        work: Callable[[], Awaitable[None]],
        stand_by: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Do the leader's work whenever we lead, and stand by between; ends only by an exception.

        Args:
            work: Begun anew at each election.
            stand_by: What is done between, begun anew each time; cancelled before the work begins.
        """
        while True:
            try:
                await self.run(work, stand_by=stand_by)
            except LeadershipLost as error:
                _log.warning("%s; standing by", error)

    async def _lead(self, on_started: Callable[[], Awaitable[None]]) -> None:
        work = asyncio.ensure_future(on_started())
        renewal = asyncio.create_task(self._renew())
        try:
            await asyncio.wait((work, renewal), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (renewal, work):
                task.cancel()
            # Exceptions are told below; here they must not keep the other from ending.
            await asyncio.gather(renewal, work, return_exceptions=True)
        for task in (work, renewal):
            if not task.cancelled():
                task.result()

    async def _wait(self, stand_by: Callable[[], Awaitable[None]] | None) -> None:
        if stand_by is None:
            await self._acquire()
            return
        between = asyncio.ensure_future(stand_by())
        acquiring = asyncio.create_task(self._acquire())
        try:
            await asyncio.wait((between, acquiring), return_when=asyncio.FIRST_COMPLETED)
            if between.done():
                between.result()  # its fault, if it has one
            await acquiring
        finally:
            for task in (between, acquiring):
                task.cancel()
            await asyncio.gather(between, acquiring, return_exceptions=True)

    async def _acquire(self) -> None:
        while True:
            try:
                if await self._first_attempt():
                    _log.info("%s leads (%s)", self._identity, self._name)
                    return
            except (KubeError, TimeoutError) as error:
                _log.warning("lease %s: %s", self._name, str(error) or "no answer in time")
            await asyncio.sleep(self._until_next_attempt())

    async def _first_attempt(self) -> bool:
        """Try once; who is cancelled while it writes hears the answer, to give back what it got."""
        attempt = asyncio.create_task(self._attempt())
        try:
            async with asyncio.timeout(self._renew_deadline):
                return await asyncio.shield(attempt)
        except asyncio.CancelledError:
            if self._writes:
                await asyncio.wait((attempt,), timeout=RELEASE_PATIENCE)
            raise
        finally:
            attempt.cancel()
            await asyncio.gather(attempt, return_exceptions=True)

    def _until_next_attempt(self) -> float:
        pause = self._retry_period * (1 + 0.2 * self._jitter())
        expiry = self._expiry() - self._clock()
        # Be there when the lease expires, rather than up to a period later.
        return min(pause, expiry) if expiry > 0 else pause

    async def _renew(self) -> None:
        while True:
            await asyncio.sleep(min(self._retry_period, max(0.0, self.deadline - self._clock())))
            before = self.deadline
            left = before - self._clock()
            if left <= 0:
                raise LeadershipLost(f"lease {self._name} was not renewed within the deadline")
            try:
                async with asyncio.timeout(left):
                    is_ours = await self._attempt()
            except TimeoutError:
                continue
            except (ApiError, ConnectionFailed) as error:
                _log.warning("lease %s is not renewed: %s", self._name, error)
                continue
            if not is_ours:
                self.deadline = _NEVER
                raise LeadershipLost(f"lease {self._name} is held by {self.leader!r} now")
            if self._clock() >= before:
                # Who asked since then was told that we do not lead, and may have given up for good.
                raise LeadershipLost(f"lease {self._name} was renewed after the deadline")

    async def _attempt(self) -> bool:
        """Try once to get or to renew the lease; return whether we hold it."""
        sent = self._clock()
        if not (self.is_leader and self._observed is not None):
            try:
                self._observe(await self._client.get(LEASES, self._name, self._namespace))
            except NotFound:
                return await self._create(sent)
            if self.leader not in ("", self._identity) and self._clock() < self._expiry():
                return False
        try:
            await self._write(self._mine())
        except Conflict:
            # Someone wrote first, or our own last write succeeded without an answer: look again.
            self._observe(await self._client.get(LEASES, self._name, self._namespace))
            if self.leader != self._identity:
                return False
            await self._write(self._mine())
        self.deadline = sent + self._renew_deadline
        return True

    async def _create(self, sent: float) -> bool:
        lease: Manifest = {
            "apiVersion": LEASES.api_version,
            "kind": LEASES.kind,
            "metadata": {
                "name": self._name,
                "namespace": self._namespace,
                "annotations": dict(self._annotations()),
            },
            "spec": self._mine(),
        }
        self._writes = True
        try:
            self._observe(await self._client.create(LEASES, lease))
        except AlreadyExists:
            return False
        finally:
            self._writes = False
        self.deadline = sent + self._renew_deadline
        return True

    async def _write(self, spec: dict[str, Any]) -> None:
        """Replace the spec of the observed lease, keeping whatever else others wrote into it."""
        assert self._observed is not None
        observed = self._observed["metadata"]
        metadata = {
            **observed,
            "annotations": {**(observed.get("annotations") or {}), **self._annotations()},
        }
        spec = {**self._observed.get("spec", {}), **spec}
        lease = {**self._observed, "metadata": metadata, "spec": spec}
        self._writes = True
        try:
            self._observe(await self._client.replace(LEASES, lease))
        finally:
            self._writes = False

    def _observe(self, lease: Manifest) -> None:
        spec = msgspec.convert(lease.get("spec") or {}, LeaseSpec)
        if spec != self._spec:
            self._spec = spec
            self._observed_at = self._clock()
        self._observed = lease

    def _expiry(self) -> float:
        seconds = self._spec.lease_duration_seconds or self._lease_duration
        return self._observed_at + seconds

    def _mine(self) -> dict[str, Any]:
        stamp = self._now().strftime("%Y-%m-%dT%H:%M:%S.%fZ")
        transitions = self._spec.lease_transitions or 0
        is_ours = self.leader == self._identity
        return {
            "holderIdentity": self._identity,
            "leaseDurationSeconds": self._lease_duration,
            "acquireTime": self._spec.acquire_time if is_ours else stamp,
            "renewTime": stamp,
            "leaseTransitions": transitions
            if is_ours or self._observed is None
            else transitions + 1,
        }

    async def _release(self) -> None:
        given_back = {**self._mine(), "holderIdentity": "", "leaseDurationSeconds": 1}
        try:
            async with asyncio.timeout(RELEASE_PATIENCE):
                try:
                    await self._write(given_back)
                except Conflict:
                    # Our last renewal was cut off before its answer, or a person edited the lease.
                    self._observe(await self._client.get(LEASES, self._name, self._namespace))
                    if self.leader == self._identity:
                        await self._write(given_back)
        except (KubeError, TimeoutError) as error:
            _log.warning("lease %s expires by itself: %s", self._name, error)
