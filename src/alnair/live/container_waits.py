"""Why containers of a pod that has a node do not run, as its kubelet says."""

from typing import Final

from msgspec import Struct

from alnair.kube.objects import wire

#: Reasons that say no more than that the kubelet is at it.
_UNDER_WAY: Final = ("ContainerCreating", "PodInitializing")


class _Waiting(Struct, frozen=True):
    reason: str | None = None
    message: str | None = None


class _Ended(Struct, rename="camel", frozen=True):
    exit_code: int = 0
    reason: str | None = None


class _State(Struct, frozen=True):
    waiting: _Waiting | None = None


class _LastState(Struct, frozen=True):
    terminated: _Ended | None = None


class _Container(Struct, rename="camel"):
    name: str
    state: _State = _State()
    last_state: _LastState = _LastState()


class _Status(wire.PodStatusWire, rename="camel"):
    container_statuses: list[_Container] | None = None
    init_container_statuses: list[_Container] | None = None


class PodWithContainers(wire.PodWire):
    """A pod, with what its kubelet says of its containers."""

    status: _Status | None = None


def waits(pod: PodWithContainers) -> str:
    """Return which containers do not run and why; empty if all do, or ended, or no kubelet told."""
    status = pod.status or _Status()
    first, then = status.init_container_statuses or (), status.container_statuses or ()
    under_way = False
    for one in (*first, *then):
        waiting = one.state.waiting
        if waiting is None:
            continue
        if (reason := waiting.reason or "") in (*_UNDER_WAY, ""):
            under_way = True
            continue
        ended = one.last_state.terminated
        before = f"; it ended with {ended.exit_code} ({ended.reason})" if ended else ""
        text = f"{reason}: {waiting.message}" if waiting.message else reason
        return f"its container {one.name} does not run: {text}{before}"
    if under_way:
        return "its containers are being started: images are pulled, or volumes mounted"
    return ""
