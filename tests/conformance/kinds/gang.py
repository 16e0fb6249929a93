"""Gang cases, as far as gangs are decided whole here too."""

from typing import Any, Final

import msgspec

from alnair.kube.objects import wire
from alnair.kube.objects.amounts import base_units
from alnair.kube.objects.node_projection import project_node
from alnair.kube.objects.pod_projection import PodProjector
from alnair.kube.pod_groups.dialects import GangProjector, PodGroupWire
from alnair.kube.timestamps import timestamp
from alnair.model import names
from alnair.model.workload import Pod
from alnair.scheduler.engine import events
from alnair.scheduler.engine.engine import Engine
from alnair.scheduler.gangs.gangs import in_turn
from alnair.scheduler.gangs.readiness import missing, not_ready, resource_gap
from alnair.scheduler.profiles import profiles
from conformance.document import Case, Object
from conformance.outcome import NotCoveredError, same

#: Expectations about pods that hold their place and wait in Permit until the gang is complete, or
#: until PostFilter rejects them. Gangs are decided whole here, so nothing ever waits there.
PERMIT: Final = frozenset({"permit", "gang_permit", "postfilter"})


def check(name: str, case: Case) -> None:
    """Raise unless the gang is decided as expected."""
    engine = _Cluster(case)
    for want, expected in case.want.items():
        match want:
            case "less":
                same("less", engine.less(), expected)
            case "prefilter_success":
                same("PreFilter passes", engine.ready(), expected)
            case "cluster_resource_fits":
                same("the cluster has minResources", engine.fits(), expected)
            case _:
                raise NotCoveredError(f"gang cases of {name} that want {want}")


class _Cluster:
    """The case's objects in an engine that has learnt of them and decided nothing."""

    def __init__(self, case: Case) -> None:
        self._case = case
        self._project = PodProjector()
        self.engine = Engine(profiles())
        nodes = (project_node(msgspec.convert(n, wire.NodeWire)) for n in case.nodes)
        groups = case.extra.get("podGroups") or []
        gangs = (GangProjector(g["apiVersion"])(msgspec.convert(g, PodGroupWire)) for g in groups)
        queued = case.extra.get("queuedAt") or []
        #: The pods that wait, in the order of the case.
        self.waiting = [
            self._pod(raw, number, queued[number] if number < len(queued) else None)
            for number, raw in enumerate([*([case.pod] if case.pod else []), *case.pods])
        ]
        existing = (self._pod(raw, -1 - n, None) for n, raw in enumerate(case.existing_pods))
        self.engine.learn(
            [
                *map(events.NodeChanged, nodes),
                *map(events.GangChanged, gangs),
                *map(events.PodChanged, (*existing, *self.waiting)),
            ],
            0.0,
        )

    def _pod(self, raw: Object, number: int, queued: Any) -> Pod:
        pod = self._project(msgspec.convert(raw, wire.PodWire))
        changes: dict[str, Any] = {"uid": f"pod{number}", "scheduler": names.SCHEDULER}
        if queued:
            changes["created"] = timestamp(queued)
        return msgspec.structs.replace(pod, **changes)

    def less(self) -> bool:
        """Return whether the first pod's turn comes before the second's."""
        first, second = self.waiting
        unit = self.engine._queue.pop()
        assert unit is not None
        if first.uid in unit.pods and second.uid in unit.pods:
            return in_turn(unit.pods.values())[0].pod.uid == first.uid
        return first.uid in unit.pods

    def ready(self) -> bool:
        """Return whether the first pod's gang has enough pods, and the cluster its minimum."""
        pod = self.waiting[0]
        state = self.engine._gangs.find((pod.namespace, pod.group)) if pod.group else None
        if state is None or state.gang is None:
            return True  # upstream, it is Permit that misses the PodGroup
        columns = self.engine.view.cluster.columns
        return not not_ready(state) and not resource_gap(state, columns)

    def fits(self) -> bool:
        """Return whether the cluster has the case's minResources free."""
        extra = self._case.extra
        namespace, _, name = extra["podGroup"].partition("/")
        state = self.engine._gangs.find((namespace, name))
        own = state.members.values() if state else ()
        wanted = base_units(extra["minResources"])
        return not missing(wanted, self.engine.view.cluster.columns, own)
