"""Pods whose scheduler name nobody here serves: which names are, and which may have been meant."""

from collections.abc import Iterable
from typing import Final

from msgspec.structs import replace

from alnair.model.names import SCHEDULER
from alnair.model.near_names import near
from alnair.model.workload import Pod
from alnair.scheduler.advice.diagnosis import Change, Diagnosis, UnservedName

#: How alike scheduler names are (0-1) that are taken for one another: many end in `-scheduler`.
_ALIKE: Final = 0.8
#: Names that are told at most, and those among which they are chosen.
_TOLD: Final = 3
_MOST: Final = 50


def near_schedulers(name: str, known: Iterable[str]) -> tuple[str, ...]:
    """Return the scheduler names that may have been meant, the default one before its profiles."""
    found = near(name, known, limit=_MOST, least=_ALIKE)
    if SCHEDULER in found and SCHEDULER.startswith(f"{name}-"):
        found = (SCHEDULER, *(one for one in found if one != SCHEDULER))
    return found[:_TOLD]


def unserved(pod: Pod, served: Iterable[str]) -> Diagnosis:
    """Return what the scheduler that leads knows of a pod that names another scheduler."""
    names = tuple(sorted(served))
    return Diagnosis(
        f"{pod.namespace}/{pod.name}",
        pod.scheduler,
        "unserved",
        message=f"no scheduler of Alnair serves the name {pod.scheduler!r}",
        unserved=UnservedName(names, near_schedulers(pod.scheduler, names)),
    )


def under_another(known: Diagnosis, taken: str, found: Diagnosis) -> Diagnosis:
    """Return the diagnosis of such a pod with what a scheduler that is there would say of it.

    Args:
        known: of the pod, `unserved`.
        taken: the name of that scheduler.
        found: its diagnosis.
    """
    name = known.unserved
    assert name is not None
    would = (
        f"{taken} would place it on {found.node}"
        if found.fits
        else (f"{taken} would say: {found.message}")
    )
    changes = found.changes
    if found.fits:
        changes = (Change("scheduler-name", f"write spec.schedulerName: {taken}", found.node),)
    meant = name.near[0] if name.near else taken
    waits_for = f"a scheduler that serves {known.scheduler!r}, or to be created anew with "
    waits_for += f"spec.schedulerName: {meant} (that of a pod cannot be changed)"
    held_back = found.stage in ("gated", "deleting")
    return replace(
        found,
        scheduler=known.scheduler,
        stage=found.stage if held_back else "unserved",
        message=f"{known.message}; {would}" if not held_back else known.message,
        node="",
        fits=False,
        changes=changes,
        unserved=name,
        waits_for=(*found.waits_for, waits_for) if held_back else (waits_for,),
    )


def instead(name: str, served: Iterable[str], taken: str) -> str:
    """Return the note on a pod of such a name that is decided on as if it had another one."""
    close = near_schedulers(name, served)
    meant = f" (did you mean {' or '.join(close)}?)" if close else ""
    return f"no profile here serves its scheduler {name!r}{meant}: this is what {taken} would do"
