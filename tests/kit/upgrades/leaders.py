"""Whether two ever led at once: by what Leases said, and by who wrote what only a leader writes."""

import contextlib
import json
import time
from collections import defaultdict
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from typing import Any

import msgspec

from alnair.kube.client import Client
from alnair.kube.informer import Change, Informer
from alnair.kube.resources import LEASES, Manifest
from alnair.model.names import NAMESPACE

#: What only a leader writes, by its component: verb, resource and subresource.
_DECISIONS = {
    "alnair-scheduler": {
        ("create", "pods", "binding"),
        ("create", "pods", "eviction"),
        ("delete", "pods", ""),
        ("patch", "podgroups", ""),
    },
    "alnair-controller": {
        ("patch", "podgroups", "status"),
        ("patch", "elasticquotas", "status"),
    },
}
_ACCOUNT = f"system:serviceaccount:{NAMESPACE}:"
_POD = "authentication.kubernetes.io/pod-name"


class Write(msgspec.Struct, frozen=True):
    """A decision that was carried out: by which pod of which component, and when (Unix seconds)."""

    component: str
    pod: str
    at: float
    what: str


class Term(msgspec.Struct):
    """Of one holder of a Lease; Unix seconds by its own clock, which is this machine's."""

    holder: str
    since: float
    until: float = 0.0


class Leases:
    """Follows the Leases of our components while it runs.

    Args:
        client: Of an administrator.

    Attributes:
        terms: By the Lease's name.
        faults: Where one took a Lease that had neither been given back nor run out.
    """

    def __init__(self, client: Client) -> None:
        self.terms: defaultdict[str, list[Term]] = defaultdict(list)
        self.faults: list[str] = []
        self._informer = Informer(
            client, LEASES, lambda lease: lease, self._hear, namespace=NAMESPACE
        )

    async def run(self) -> None:
        """Follow, until cancelled."""
        await self._informer.run()

    def _hear(self, change: Change[Manifest]) -> None:
        name, found = change.key[1], change.new
        if name not in _DECISIONS or found is None:
            return
        spec = found["spec"]
        holder, renewed = spec.get("holderIdentity") or "", _seconds(spec["renewTime"])
        terms = self.terms[name]
        if terms and holder != terms[-1].holder:
            before = change.old["spec"] if change.old else spec
            if terms[-1].holder:
                runs_out = _seconds(before["renewTime"]) + before["leaseDurationSeconds"]
                if holder and _seconds(spec["acquireTime"]) < runs_out:
                    self.faults.append(f"{name}: {holder} took over from {terms[-1]} too early")
                terms[-1].until = renewed
        if holder and (not terms or holder != terms[-1].holder):
            terms.append(Term(holder, _seconds(spec["acquireTime"])))
        elif terms and not holder:
            terms.append(Term("", renewed))


def writes(log: Path) -> list[Write]:
    """The decisions in an API server's audit log, in their order."""
    found = []
    for line in log.read_text().splitlines():
        with contextlib.suppress(json.JSONDecodeError):  # the last may be cut
            found += list(_of(json.loads(line)))
    return sorted(found, key=lambda one: one.at)


def _of(event: dict[str, Any]) -> Iterable[Write]:
    user, about = event["user"], event.get("objectRef") or {}
    component = str(user["username"]).removeprefix(_ACCOUNT)
    done = event["verb"], about.get("resource", ""), about.get("subresource", "")
    # What was refused changed nothing.
    code = (event.get("responseStatus") or {}).get("code", 0)
    if done in _DECISIONS.get(component, ()) and code < 300:
        (pod,) = user["extra"][_POD]
        at = _seconds(event["requestReceivedTimestamp"])
        yield Write(component, pod, at, "/".join((*done, about.get("name", ""))))


def judge(leases: Leases, found: list[Write]) -> list[str]:
    """Return what is wrong: writers whose time overlaps, and writes of those who did not lead.

    Args:
        leases: What was seen of them.
        found: In their order.
    """
    faults = list(leases.faults)
    last: dict[str, str] = {}
    done: defaultdict[str, set[str]] = defaultdict(set)
    for write in found:
        before = last.get(write.component)
        if before and before != write.pod:
            done[write.component].add(before)
        if write.pod in done[write.component]:
            faults.append(f"{write} after {before} had begun")
        last[write.component] = write.pod
        own = [one for one in leases.terms[write.component] if one.holder == write.pod]
        # A term that was given back ended when that was written, and the last has not ended.
        if not any(one.since <= write.at <= (one.until or write.at) for one in own):
            faults.append(f"{write} did not lead then: {own}")
    return faults


def settled(log: Path) -> None:
    """Wait until an audit log has all up to this moment: Leases are renewed every few seconds."""
    now = time.time()
    until = time.monotonic() + 30
    while time.monotonic() < until:
        *_, last, _ = log.read_text().rsplit("\n", 2)
        if _seconds(json.loads(last)["requestReceivedTimestamp"]) > now:
            return
        time.sleep(0.5)
    raise TimeoutError(f"{log} has nothing new")


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text).timestamp()
