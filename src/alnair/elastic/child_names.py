"""What the objects of a training job are called: as the original calls them, where it has them."""

import hashlib
from typing import Final

import msgspec

from alnair.model.training_job import TrainingJob

#: A StatefulSet writes its name and a hash of ten characters into a label of 63.
_MOST: Final = 52
_HASH: Final = 8
#: Characters of a job's uid that tell it from others of its name.
_OF_UID: Final = 8
_GROUPS: Final = {
    "ElasticHorovodJob": "podgroup-ehjob-",
    "HorovodJob": "podgroup-hjob-",
    "ElasticTorchJob": "podgroup-etjob-",
}


class ChildNames(msgspec.Struct, frozen=True):
    """Names of the objects of one job, in its namespace."""

    service: str
    workers: str
    launcher: str
    group: str
    hosts: str
    keys: str
    network: str

    def worker(self, index: int) -> str:
        """Return the name of a worker's pod, which is that of its host, too."""
        return f"{self.workers}-{index}"

    def host(self, index: int) -> str:
        """Return the name by which other pods of the namespace reach a worker."""
        return f"{self.worker(index)}.{self.service}"


def child_names(job: TrainingJob) -> ChildNames:
    """Return the names of a job's objects; long names are cut, and stay apart by a hash."""
    kind = job.kind.lower()
    workers, launcher = makers(job.kind, job.name)
    return ChildNames(
        service=_short(f"{kind}-", job.name, ""),
        workers=workers,
        launcher=launcher,
        group=_short(_GROUPS[job.kind], job.name, ""),
        hosts=_short(f"{kind}-", job.name, "-hosts"),
        # Nobody may read it, so nobody could tell it from one that a former job has left.
        keys=_short(f"{kind}-", job.name, f"-keys-{job.uid[:_OF_UID]}"),
        network=_short(f"{kind}-", job.name, "-network"),
    )


def makers(kind: str, name: str) -> tuple[str, str]:
    """Return the names of what makes the workers and the launcher of a job of this name."""
    before = f"{kind.lower()}-"
    return _short(before, name, "-workers"), _short(before, name, "-launcher")


def _short(before: str, name: str, after: str) -> str:
    room = _MOST - len(before) - len("-launcher")
    if len(name) > room:
        digest = hashlib.blake2b(name.encode(), digest_size=_HASH // 2).hexdigest()
        name = f"{name[: room - _HASH - 1].rstrip('-')}-{digest}"
    return f"{before}{name}{after}"
