"""What a gang needs before it is tried: a PodGroup, enough pods, and its `minResources` free.

Source of semantics: PreFilter and `CheckClusterResource` of scheduler-plugins' co-scheduling.
"""

from collections.abc import Iterable, Mapping

import numpy as np

from alnair.model.plurals import counted
from alnair.scheduler.gangs.gangs import GangState
from alnair.scheduler.state.accounts import Record
from alnair.scheduler.state.nodes.columns import Columns


def not_ready(state: GangState) -> str:
    """Return why the gang need not be tried whatever the cluster has free, or an empty text."""
    namespace, name = state.key
    if state.gang is None:
        return f"PodGroup {namespace}/{name} does not exist: create it, or drop the pod's label"
    if state.gang.problem:
        return f"PodGroup {namespace}/{name} cannot be read: {state.gang.problem}"
    pods, lacking = len(state.unit.pods), state.lacking()
    if pods < lacking:
        have = state.min_member - lacking + pods
        return (
            f"gang {namespace}/{name} needs {counted(state.min_member, 'pod')} and has {have}: "
            f"waiting for {lacking - pods} more"
        )
    return ""


def resource_gap(state: GangState, columns: Columns) -> str:
    """Return what of the gang's `minResources` is not free, empty if all of it is."""
    gang = state.gang
    if gang is None or not gang.min_resources or gang.needed < gang.min_member:
        return ""  # those of an elastic gang are what all that start together need
    wanted = {**dict(gang.min_resources), "pods": gang.min_member}
    return missing(wanted, columns, state.members.values())


def missing(wanted: Mapping[str, int], columns: Columns, own: Iterable[Record]) -> str:
    """Return what of the wanted resources the cluster has not free, empty if it has all.

    Args:
        wanted: resource → amount, in base units.
        columns: nodes.
        own: pods whose resources count as free: the gang's own.
    """
    held: dict[str, float] = {}
    for record in own:
        if record.row >= 0 and record.vector is not None:
            for name, amount in record.vector.spec.requests:
                held[name] = held.get(name, 0.0) + amount
    alive = np.flatnonzero(columns.alive[: columns.n])
    lacking = []
    for name, amount in wanted.items():
        index = columns.resources.get(name)
        # A node that is over-committed takes nothing away from the others.
        free = 0.0 if index is None else float(np.maximum(columns.free[index, alive], 0).sum())
        free += held.get(name, 0.0)
        if free < amount:
            unit = 1000 if name == "cpu" else 1
            lacking.append(f"{name} {amount / unit:.15g} (free {free / unit:.15g})")
    return ", ".join(lacking)
