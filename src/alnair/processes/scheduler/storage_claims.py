"""Gets pods their storage before they are bound: writes what was decided, and waits for it.

Two writers meet here, the scheduler and the controllers of Kubernetes, so each write is one to the
object as it was just read. A write that was done and whose answer was lost is found done. What was
written before a crash stays and is right: a claim with a volume or a node chosen ties its pod to
where that is.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Final

from alnair.kube.client import Client
from alnair.kube.errors import Conflict
from alnair.kube.objects.storage import BOUND_BY_CONTROLLER, SELECTED_NODE
from alnair.kube.resources import CLAIMS, PERSISTENT_VOLUMES, Manifest
from alnair.live.engine_feed import Feed
from alnair.model.action import Bind
from alnair.model.volumes import ClaimBinding, PersistentVolume, PersistentVolumeClaim
from alnair.model.workload import LabelSelector
from alnair.scheduler.state.pods.label_selectors import matches

#: Sends until there is a definite answer; returns the error, empty if it is done.
Insist = Callable[[str, Callable[[], Awaitable[object]]], Awaitable[str]]
#: Reads and writes of one object that others change at the same time.
_TRIES: Final = 10
#: Seconds between looks at the local copies, growing from the first to the last.
_FIRST_LOOK, _LAST_LOOK = 0.02, 0.5
#: Seconds after which the API server is asked about a write that the local copies do not show.
UNSEEN: Final = 5.0


class _Refused(Exception):  # noqa: N818 - an answer, not a fault
    """The object is not what was decided on."""


class ClaimWriter:
    """Writes and waits for the claims of pods.

    Args:
        client: An open client.
        feed: Has the local copies.
        insist: Sends requests.
    """

    def __init__(self, client: Client, feed: Feed, insist: Insist) -> None:
        self._client = client
        self._feed = feed
        self._insist = insist

    async def ready(self, bind: Bind) -> str:
        """Return when the pod's claims are bound, or why they will not be."""
        for claim in bind.claims:
            if error := await self._write(claim, bind.node):
                return f"binding volumes: {error}"
        until, ask = time.monotonic() + bind.patience, time.monotonic() + UNSEEN
        pause = _FIRST_LOOK
        watched = [_Watched(claim, bind.node, self._feed) for claim in bind.claims]
        while waiting := [w for w in watched if not w.bound()]:
            error = self._gone(bind) or next(filter(None, (w.failed() for w in waiting)), "")
            if not error and time.monotonic() >= ask:
                ask = time.monotonic() + UNSEEN
                error = await self._asked([w for w in waiting if not w.seen], bind.node)
            if not error and time.monotonic() >= until:
                names = ", ".join(f"{w.claim.namespace}/{w.claim.name}" for w in waiting)
                error = f"not bound after {bind.patience:.0f} s: claims {names}"
            if error:
                return f"binding volumes: {error}"
            await asyncio.sleep(pause)
            pause = min(1.5 * pause, _LAST_LOOK)
        astray = next(filter(None, (w.astray() for w in watched)), "")
        return f"binding volumes: {astray}" if astray else ""

    async def _asked(self, unseen: list["_Watched"], node: str) -> str:
        """Return why claims will not be bound whose write was never seen in the local copies.

        They skip what was taken back between two looks, and then would be waited for in vain.
        """
        for one in unseen:
            stands = True

            async def ask(claim: ClaimBinding = one.claim) -> None:
                nonlocal stands
                stands = await self._stands(claim, node)

            what = f"storage of {one.claim.namespace}/{one.claim.name}"
            if error := await self._insist(what, ask):
                return error
            if not stands and not one.bound():
                return one.refusal
        return ""

    async def _stands(self, claim: ClaimBinding, node: str) -> bool:
        """Whether what was written is there still."""
        if claim.volume:
            found = await self._client.get(PERSISTENT_VOLUMES, claim.volume)
            return (found["spec"].get("claimRef") or {}).get("uid") == claim.uid
        found = await self._client.get(CLAIMS, claim.name, claim.namespace)
        return (found["metadata"].get("annotations") or {}).get(SELECTED_NODE) == node

    def _gone(self, bind: Bind) -> str:
        if self._feed.pod(bind.pod) is None:
            return "the pod is gone"
        return "" if self._feed.node(bind.node) else f"node {bind.node} is gone"

    async def _write(self, claim: ClaimBinding, node: str) -> str:
        refused = ""

        async def send() -> None:
            nonlocal refused
            try:
                await (self._bind_volume(claim) if claim.volume else self._select(claim, node))
            except _Refused as error:
                refused = str(error)

        what = f"storage of {claim.namespace}/{claim.name}"
        return await self._insist(what, send) or refused

    async def _bind_volume(self, claim: ClaimBinding) -> None:
        """Bind the volume to the claim; the controller manager does the other direction."""
        for _ in range(_TRIES):
            found = await self._client.get(PERSISTENT_VOLUMES, claim.volume)
            reference = found["spec"].get("claimRef")
            patch: Manifest = {"metadata": {"resourceVersion": _version(found)}}
            if reference is None:
                # Says that this was decided and may be undone, unlike what people set aside.
                patch["metadata"]["annotations"] = {BOUND_BY_CONTROLLER: "yes"}
            elif (reference.get("namespace"), reference.get("name")) != (
                claim.namespace,
                claim.name,
            ) or reference.get("uid") not in (None, "", claim.uid):
                raise _Refused(f"volume {claim.volume} belongs to another claim by now")
            elif reference.get("uid"):
                return
            patch["spec"] = {
                "claimRef": {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "namespace": claim.namespace,
                    "name": claim.name,
                    "uid": claim.uid,
                }
            }
            try:
                await self._client.merge_patch(PERSISTENT_VOLUMES, claim.volume, patch)
            except Conflict:
                continue
            return
        raise _Refused(f"volume {claim.volume} changes all the time")

    async def _select(self, claim: ClaimBinding, node: str) -> None:
        """Tell the claim's provisioner the node."""
        for _ in range(_TRIES):
            found = await self._client.get(CLAIMS, claim.name, claim.namespace)
            meta = found["metadata"]
            selected = (meta.get("annotations") or {}).get(SELECTED_NODE)
            if meta["uid"] != claim.uid:
                raise _Refused(f"claim {claim.namespace}/{claim.name} is another one by now")
            if selected == node:
                return
            if selected or found["spec"].get("volumeName"):
                raise _Refused(f"claim {claim.namespace}/{claim.name} got storage elsewhere")
            patch = {
                "metadata": {
                    "resourceVersion": _version(found),
                    "annotations": {SELECTED_NODE: node},
                }
            }
            try:
                await self._client.merge_patch(CLAIMS, claim.name, patch, claim.namespace)
            except Conflict:
                continue
            return
        raise _Refused(f"claim {claim.namespace}/{claim.name} changes all the time")


class _Watched:
    """A claim that was written to, as the local copies show it.

    The copies are behind, so something counts as taken back only after it was seen there.

    Attributes:
        seen: Whether it was.
    """

    def __init__(self, claim: ClaimBinding, node: str, feed: Feed) -> None:
        self.claim = claim
        self._node = node
        self._feed = feed
        self.seen = False

    def bound(self) -> bool:
        """Return whether both sides are bound, and the volume is known."""
        found = self._claim()
        if found is None or found.uid != self.claim.uid or not found.bound:
            return False
        return self._volume(found.volume) is not None

    def astray(self) -> str:
        """Return why the volume is not where the pod goes, or an empty text; it is bound."""
        found, node = self._claim(), self._feed.node(self._node)
        volume = self._volume(found.volume) if found else None
        if volume is None or node is None or volume.nodes is None:
            return ""
        if any(matches(LabelSelector(term.labels), node.labels) for term in volume.nodes):
            return ""
        return f"volume {volume.name} was made out of reach of node {node.name}"

    def failed(self) -> str:
        """Return why it will not be bound, or an empty text."""
        named = f"{self.claim.namespace}/{self.claim.name}"
        found = self._claim()
        if found is None or found.uid != self.claim.uid:
            return f"claim {named} is gone"
        if self.claim.volume:
            volume = self._volume(self.claim.volume)
            done = volume is not None and volume.claim_uid == self.claim.uid
        else:
            done = found.selected_node == self._node
        if self.seen and not done:
            return self.refusal
        self.seen = done
        return ""

    @property
    def refusal(self) -> str:
        """What is said of a write that was taken back."""
        return f"the storage of claim {self.claim.namespace}/{self.claim.name} was refused"

    def _volume(self, name: str) -> PersistentVolume | None:
        found: PersistentVolume | None = self._feed.object(PERSISTENT_VOLUMES.kind, "", name)
        return found

    def _claim(self) -> PersistentVolumeClaim | None:
        found: PersistentVolumeClaim | None = self._feed.object(
            CLAIMS.kind, self.claim.namespace, self.claim.name
        )
        return found


def _version(found: Manifest) -> str:
    version: str = found["metadata"]["resourceVersion"]
    return version
