"""What `alnair explain` says about a pod, as values; its JSON is these structs."""

from typing import Literal

import msgspec

#: Where a pod is: `waiting` for a node, held back by `gated` or `refused` as such, left alone by
#: Alnair because it names another scheduler (`unserved`), on its way to a node (`binding`) or there
#: (`bound`), going (`deleting`) or done (`finished`).
Stage = Literal[
    "waiting", "gated", "refused", "unserved", "binding", "bound", "deleting", "finished"
]


class Predicate(msgspec.Struct, frozen=True):
    """How many nodes one reason of a plugin refuses.

    Attributes:
        nodes: refused, whatever other plugins say.
        first: of these, refused by no earlier plugin: the number in the message.
        only: of these, refused by no other plugin at all.
        resolvable: on some of the nodes, other pods' leaving may help.
    """

    plugin: str
    reason: str
    nodes: int
    first: int
    only: int
    resolvable: bool


class Candidate(msgspec.Struct, frozen=True):
    """A node close to fitting: why it does not, and how much it lacks of which resource."""

    node: str
    reasons: tuple[str, ...]
    missing: dict[str, int]


class Change(msgspec.Struct, frozen=True):
    """One change with which the pod fits now: the decision was made again with it, and it does.

    Attributes:
        kind: what is changed, such as `request`, `toleration`, `node-selector`.
        text: what to do.
        node: where the pod would go.
    """

    kind: str
    text: str
    node: str


class ChangePair(msgspec.Struct, frozen=True):
    """Two changes with which the pod fits now, and with neither alone; verified as one change is.

    Attributes:
        kinds: what is changed.
        texts: what to do.
        node: where the pod would go.
    """

    kinds: tuple[str, str]
    texts: tuple[str, str]
    node: str

    @property
    def text(self) -> str:
        """What to do, as one text."""
        return "; and ".join(self.texts)


class LabelValue(msgspec.Struct, frozen=True):
    """A value that there is, and how many nodes have it."""

    value: str
    nodes: int


class UnmetLabel(msgspec.Struct, frozen=True):
    """What a pod requires that no node at all has, and what there is instead.

    Attributes:
        field: where the pod says it; `metadata.annotations` for a list of GPU models.
        key: of the label, the annotation, or `metadata.name`; a resource.
        operator: In, Exists, Gt or Lt; empty for a resource.
        asked: the values that would do.
        values: those that there are, near ones first, then those of the most nodes.
        more: how many further ones there are.
        keys: labels or resources that there are with a name like this one, if no node has this one.
    """

    field: str
    key: str
    operator: str
    asked: tuple[str, ...] = ()
    values: tuple[LabelValue, ...] = ()
    more: int = 0
    keys: tuple[str, ...] = ()


class GangDiagnosis(msgspec.Struct, frozen=True):
    """The pod's gang: of `min_member` pods that must run, some are placed, and some exist.

    Attributes:
        exists: its PodGroup does.
        lacking: pods that must still be placed together.
        fit: of the lacking ones, those that fit now.
        blocked: the first pod that does not, whose reasons are told.
    """

    name: str
    exists: bool
    min_member: int
    pods: int
    placed: int
    lacking: int
    fit: int
    blocked: str


class QueueDiagnosis(msgspec.Struct, frozen=True):
    """The pod's place in the queue.

    Attributes:
        place: `active` (to be tried next), `backoff`, or `unschedulable` (waits for a change).
        position: 1 for the first of all that wait, by priority and age; a gang counts once.
        length: how many wait.
        since: when it came, seconds since the epoch.
        attempts: how often it was tried in vain.
        until: when it is tried again at the earliest, if that is known.
    """

    place: str
    position: int
    length: int
    since: float
    attempts: int
    until: float | None = None


class UnservedName(msgspec.Struct, frozen=True):
    """A scheduler name that no scheduler of Alnair serves.

    Attributes:
        served: the names that are served.
        near: those that may have been meant, the nearest first; with that of kube-scheduler if one
            is seen.
        source: who says what is served: the `scheduler` that leads, or nobody, and these are the
            names of the `built-in` profiles.
        elsewhere: what there is to see of another scheduler of this name; empty if nothing.
    """

    served: tuple[str, ...]
    near: tuple[str, ...] = ()
    source: Literal["scheduler", "built-in"] = "scheduler"
    elsewhere: str = ""


class HeldGpu(msgspec.Struct, frozen=True):
    """A pod's part of one GPU: all of it, or a slice of so many MiB and percent of its time.

    Attributes:
        index: on its node.
        uuid: empty if the node's agent does not say it.
        model: empty if it is not known here.
        beside: what its neighbours there do to its speed, in words; empty if it has none, or its
            profile does not go by that.
    """

    index: int
    uuid: str
    model: str
    memory_mib: int
    compute: int
    whole: bool
    beside: str = ""


class ScoredNode(msgspec.Struct, frozen=True):
    """A node and the sum of what the profile's plugins score it, times their weights."""

    node: str
    score: int


class Placement(msgspec.Struct, frozen=True):
    """What a pod got, and what would be decided if it had no node now.

    All but its GPUs is about now, with the pod itself off the books: what the nodes were worth when
    it was placed is not kept.

    Attributes:
        gpus: what it holds.
        guessed: the pod does not say which GPUs it has: they are what the books take it to have.
        decided_again: its profile decides here, so what follows was computed.
        score: of its node; None if that would not take it now.
        why_not: why its node would not take it now.
        better: how many nodes would be chosen before its own.
        next: the best other node; None if no other one would take it.
        fitting: how many nodes would take it.
    """

    gpus: tuple[HeldGpu, ...] = ()
    guessed: bool = False
    decided_again: bool = False
    score: int | None = None
    why_not: tuple[str, ...] = ()
    better: int = 0
    next: ScoredNode | None = None
    fitting: int = 0


class Diagnosis(msgspec.Struct, frozen=True):
    """Why a pod is where it is, and what would help.

    Attributes:
        pod: `namespace/name`.
        source: `scheduler` (the one that leads said so) or `offline` (computed from API objects).
        node: where it is, or where it would go if it fits.
        message: the reason in one sentence, as it is in the pod's condition.
        nodes: how many there are.
        predicates: counted with the gang's other pods placed as far as they fit.
        closest: nodes by how few plugins refuse them, then by how little they lack.
        changes: single changes that help, the smallest first; each was verified.
        tried: how many changes were tried.
        all_tried: none was left out to stay quick.
        pairs: where no single change helps, the smallest pairs that do, the smallest first.
        pairs_tried: how many pairs were looked at.
        all_pairs_tried: none was left out to stay quick.
        unmet: what it requires of nodes that none has.
        placement: of a pod that has a node: what it got, and what was the next best.
        unserved: if no scheduler of Alnair serves its scheduler name.
        waits_for: what must happen.
        preemption: why less important pods do not make room for it, in kube-scheduler's words.
        notes: what else to know about this answer.
    """

    pod: str
    scheduler: str
    stage: Stage
    message: str = ""
    node: str = ""
    since: float = 0.0
    nodes: int = 0
    fits: bool = False
    predicates: tuple[Predicate, ...] = ()
    closest: tuple[Candidate, ...] = ()
    changes: tuple[Change, ...] = ()
    tried: int = 0
    all_tried: bool = True
    pairs: tuple[ChangePair, ...] = ()
    pairs_tried: int = 0
    all_pairs_tried: bool = True
    unmet: tuple[UnmetLabel, ...] = ()
    gang: GangDiagnosis | None = None
    queue: QueueDiagnosis | None = None
    placement: Placement | None = None
    unserved: UnservedName | None = None
    waits_for: tuple[str, ...] = ()
    preemption: str = ""
    notes: tuple[str, ...] = ()
    source: Literal["scheduler", "offline"] = "scheduler"
