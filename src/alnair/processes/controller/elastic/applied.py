"""What was applied of one training job, so that it is not applied again and again."""

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from math import inf
from typing import Final

import msgspec

from alnair.elastic.child_names import child_names
from alnair.elastic.desired import Child
from alnair.elastic.job_status import ends, migrates, only_counts
from alnair.elastic.pod_templates import Manifest
from alnair.model import names
from alnair.model.elastic_types import JobStatus
from alnair.model.training_job import CREATED, FAILED, RUNNING, SUCCEEDED, TrainingJob
from alnair.processes.controller.paces import Pace, Paces

#: Seconds that the first status of a job waits for more to tell: what it needs goes first.
_FIRST_STATUS: Final = 1.0
#: Seconds after which what was applied and has not been seen since is applied again. The news of a
#: burst comes late, and to repeat its writes would make it later still.
_UNSEEN: Final = 10.0
_STATUS: Final = "status"


class Applied:
    """What was written of a job, and when.

    Args:
        writes: Counts writes by what they do.
        paces: How often the same is written.
        found: Digests of what another leader applied, by object; only what differs is applied.
        keys: Its Secret is there.
        clock: Monotonic seconds.

    Attributes:
        keys: Its Secret is there.
    """

    def __init__(
        self,
        writes: Counter[str] | None = None,
        paces: Paces | None = None,
        *,
        found: Mapping[Child, str] | None = None,
        keys: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.keys = keys
        self._found = dict(found or {})
        self.writes: Counter[str] = Counter() if writes is None else writes
        self._paces = paces or Paces()
        self._clock = clock
        self._pace = Pace(clock)
        self._begun = clock()
        #: What is taken to be there, and what was applied at last, be it there or not.
        self._manifests: dict[Child, Manifest] = {}
        self._last: dict[Child, Manifest] = {}
        self._when: dict[Child, float] = {}
        #: Those that have been seen as they were applied.
        self._seen: set[Child] = set()

    def differs(self, manifest: Manifest) -> bool:
        """Whether this was not applied the last time."""
        child = child_of(manifest)
        if child in self._manifests:
            return self._manifests[child] != manifest
        return self._found.get(child) != digest(manifest)

    def wait(self, manifest: Manifest) -> float:
        """Return how many seconds this is to wait before it is applied."""
        child = child_of(manifest)
        return self._pace.wait(child, self._every(child))

    def note(self, manifest: Manifest) -> None:
        """Note that this was applied."""
        child = child_of(manifest)
        # The first write makes it; only changes have a pace.
        if child in self._last:
            is_repeat = self._last[child] == manifest
            self._pace.note(child, self._every(child), is_repeat=is_repeat)
        self._manifests[child] = self._last[child] = manifest
        self._found.pop(child, None)
        self._when[child] = self._clock()
        self._seen.discard(child)

    def note_refused(self, manifest: Manifest) -> None:
        """Note that the API server does not take this, and is not asked again at once."""
        child = child_of(manifest)
        self._pace.note(child, self._every(child))

    def forget(self, child: Child) -> None:
        """Note that an object is gone."""
        self._manifests.pop(child, None)
        self._found.pop(child, None)

    def renew(self) -> None:
        """Have all of it applied again, lest somebody has changed what we do not look at."""
        self.keys = False
        self._manifests.clear()
        self._found.clear()

    def mend(self, complaint: str, job: TrainingJob) -> bool:
        """Note that one of our objects is gone, if a complaint says so; returns whether one is."""
        children = child_names(job)
        if "not found" not in complaint:
            return False
        if children.keys in complaint:
            self.keys = False
            return True
        self.forget(Child("ConfigMap", children.hosts))
        return children.hosts in complaint

    def look(self, applied: Iterable[Manifest], changed: Collection[Child]) -> None:
        """Forget what is not as it was applied, unless the news of that is still on its way."""
        for child in map(child_of, applied):
            if child not in changed:
                self._seen.add(child)
            elif child in self._seen or self._clock() - self._when.get(child, -inf) >= _UNSEEN:
                self.forget(child)

    def may(self, verb: str, what: object) -> float:
        """Return how many seconds another write is to wait; if none, it is noted as made now.

        Args:
            verb: What it does: such as delete.
            what: To which object.
        """
        every = self._paces.write_pace
        wait = self._pace.wait((verb, what), every)
        if not wait:
            self._pace.note((verb, what), every)
        return wait

    def may_tell(self, before: JobStatus, status: JobStatus) -> float:
        """Return how many seconds a status is to wait; if none, it is noted as written now.

        How a job ended is told at once, and so is how far a migration is, for which people and
        rebalancing wait; while only counts change, they wait for further ones. A new job whose
        workers are being made says so when they train, or after a second.
        """
        if not before.conditions and _has_just_begun(status):
            return max(0.0, self._begun + _FIRST_STATUS - self._clock())
        every = self._paces.write_pace
        if only_counts(before, status):
            every = max(every, self._paces.status_pace)
        is_urgent = ends(before, status) or migrates(before, status)
        wait = 0.0 if is_urgent else self._pace.wait(_STATUS, every)
        if not wait and before.conditions:
            self._pace.note(_STATUS, every)
        return wait

    def _every(self, child: Child) -> float:
        is_group = child.kind == "PodGroup"
        return self._paces.group_pace if is_group else self._paces.write_pace


def _has_just_begun(status: JobStatus) -> bool:
    """Whether a job has workers, which do not train yet, and nothing keeps it back."""
    said = {one.type: one.status for one in status.conditions or ()}
    is_well = said.get(CREATED) == "True" and SUCCEEDED not in said and FAILED not in said
    return bool(status.target_replicas) and is_well and said.get(RUNNING) != "True"


def child_of(manifest: Manifest) -> Child:
    """Return which of a job's objects this is."""
    return Child(manifest["kind"], manifest["metadata"]["name"])


def digest(manifest: Manifest) -> str:
    """Return a digest of what is applied, the same in every process: 16 hexadecimal digits."""
    text = msgspec.json.encode(manifest, order="deterministic")
    return hashlib.blake2b(text, digest_size=8).hexdigest()


def noted(manifest: Manifest) -> Manifest:
    """Return the manifest with its digest, for who leads next."""
    metadata = manifest["metadata"]
    annotations = {**metadata.get("annotations", {}), names.APPLIED: digest(manifest)}
    return {**manifest, "metadata": {**metadata, "annotations": annotations}}
