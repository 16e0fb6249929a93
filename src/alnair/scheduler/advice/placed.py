"""What a placed pod holds, and where it would go if it were decided on now."""

import numpy as np
from msgspec.structs import replace

from alnair.model.workload import Pod, PodSpec
from alnair.scheduler.advice.diagnosis import HeldGpu, Placement, ScoredNode
from alnair.scheduler.engine.experiment import Experiment
from alnair.scheduler.engine.view import View
from alnair.scheduler.framework.evaluation import INFEASIBLE
from alnair.scheduler.framework.extension_points import Profile
from alnair.scheduler.gangs.gangs import lone_key
from alnair.scheduler.placement.gang_placement import topology_of
from alnair.scheduler.queue.unit import Unit
from alnair.scheduler.state.accounts import Record
from alnair.scheduler.state.gpus.devices import Booking
from alnair.scheduler.state.nodes.columns import Mask


def placement(view: View, record: Record, now: float) -> Placement | None:
    """Return what a pod got, and what the next best node is; None if it holds nothing.

    Args:
        view: of an engine between two steps; the engine is as before afterwards.
        record: of a pod that is booked, or will be once its node is known.
        now: seconds since the epoch.
    """
    if record.row < 0:
        return None  # its node is not there, or it has ended
    found = Placement(held(view, record), guessed=_is_guess(record))
    profile = view.profiles.get(record.pod.scheduler)
    return found if profile is None else _decided_again(view, record, profile, now, found)


def held(view: View, record: Record) -> tuple[HeldGpu, ...]:
    """Return the pod's GPUs as the books have them."""
    gpus = view.cluster.devices.gpus[record.row]
    found = []
    for booking in sorted(record.bookings, key=lambda b: b.slot):
        gpu = gpus[booking.slot]
        memory = gpu.memory_mib if booking.whole else booking.memory_mib
        compute = 100 if booking.whole else booking.compute
        found.append(HeldGpu(gpu.index, gpu.uuid, gpu.model, memory, compute, booking.whole))
    return tuple(found)


def said(pod: Pod) -> tuple[HeldGpu, ...]:
    """Return the pod's GPUs as its annotation says, where there are no books to look at."""
    slices: dict[str, HeldGpu] = {}
    # Init containers end before the others start, so the most of a container's is what is held.
    demand = pod.spec.gpu
    for part in (part for _, parts in pod.assignment for part in parts):
        memory, compute = part.memory_mib, part.compute
        if demand and not part.whole:
            memory, compute = demand.memory_mib, demand.compute
        slices[part.uuid] = HeldGpu(part.index, part.uuid, "", memory, compute, part.whole)
    return tuple(sorted(slices.values(), key=lambda gpu: gpu.index))


def _is_guess(record: Record) -> bool:
    return bool(record.bookings) and not (record.decided or record.pod.assignment)


def _decided_again(
    view: View, record: Record, profile: Profile, now: float, found: Placement
) -> Placement:
    """Add what would be decided if the pod had no node; the books are as before afterwards."""
    again, row = record.replacement(), record.row
    with (
        view.experiment(now, [again]) as experiment,
        experiment.attempt() as (statement, lifted),
    ):
        allowed = _allowed(view, record, profile, experiment)
        bookings = sorted(record.bookings, key=lambda b: b.slot)
        lifted.lift(record)
        beside = [_beside(view, again.spec, profile, row, booking) for booking in bookings]
        gpus = tuple(replace(g, beside=b) for g, b in zip(found.gpus, beside, strict=True))
        found = replace(found, gpus=gpus)
        evaluation = experiment.evaluate(again.spec, profile)
        if evaluation.refusal is not None:
            return replace(found, decided_again=True, why_not=(evaluation.refusal.text,))
        ranks = np.where(allowed, evaluation.rank, INFEASIBLE)
        why_not: tuple[str, ...] = ()
        if not evaluation.feasible(row):
            why_not = tuple(reason.text for reason in evaluation.why_not(row))
        elif not allowed[row]:
            why_not = (experiment.admission.reserved.why(),)
        elif not statement.place_on(again, profile, record.node):
            why_not = ("its GPUs cannot be had again",)
        statement.rollback()
        elsewhere = allowed.copy()
        elsewhere[row] = False
        other = None
        if statement.place(again, profile, elsewhere) is None:
            other = ScoredNode(again.node, int(ranks[again.row] // evaluation.unit))
    return replace(
        found,
        decided_again=True,
        score=None if why_not else int(ranks[row] // evaluation.unit),
        why_not=why_not,
        better=0 if why_not else int(np.count_nonzero(ranks > ranks[row])),
        next=other,
        fitting=int(np.count_nonzero(ranks >= 0)),
    )


def _beside(view: View, spec: PodSpec, profile: Profile, row: int, booking: Booking) -> str:
    """Return what the profile's plugins say of the pod's neighbours on a GPU."""
    if booking.whole:
        return ""
    plugins = profile.gpu_reasons
    said = (plugin.why_gpu(spec, view.cluster, row, booking.slot) for plugin in plugins)
    return "; ".join(filter(None, said))


def _allowed(view: View, record: Record, profile: Profile, experiment: Experiment) -> Mask:
    """Return the rows that the pod may use: not those kept for others, nor outside its domain."""
    columns = view.cluster.columns
    unit = view.unit_of(record)
    if unit is None:
        unit = Unit(record.pod.uid)
        unit.sort_by_age = lone_key(profile, record.pod)
    allowed = experiment.admission.allowed(unit, record, experiment.now)
    if allowed is None:
        allowed = np.ones(columns.n, bool)
    state = view.gang_of(record)
    topology = topology_of(state, [record]) if state else None
    if topology is not None and topology.required:
        # The rest of its gang stays where it is.
        domain = columns.labels.column(topology.required)[: columns.n]
        allowed = allowed & (domain == domain[record.row])
    return allowed
