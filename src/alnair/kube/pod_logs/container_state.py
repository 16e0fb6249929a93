"""Whether a container is there, and whether it will write any more."""

import asyncio

import msgspec

from alnair.kube.backoff import Backoff
from alnair.kube.client import Client
from alnair.kube.errors import ApiError, ConnectionFailed, NotFound
from alnair.kube.objects.wire import Container, ObjectMeta
from alnair.kube.resources import PODS


class _Terminated(msgspec.Struct, rename="camel"):
    exit_code: int = 0


class _State(msgspec.Struct):
    terminated: _Terminated | None = None


class _Status(msgspec.Struct):
    name: str = ""
    state: _State = msgspec.field(default_factory=_State)


class _PodStatus(msgspec.Struct, rename="camel"):
    phase: str = ""
    container_statuses: list[_Status] = []
    init_container_statuses: list[_Status] = []


class _Spec(msgspec.Struct, rename="camel"):
    restart_policy: str = "Always"
    containers: list[Container] = []
    init_containers: list[Container] = []


class _Pod(msgspec.Struct):
    metadata: ObjectMeta
    spec: _Spec
    status: _PodStatus


_PODS = PODS.typed(_Pod)


class ContainerState(msgspec.Struct, frozen=True):
    """A container of a pod that is there.

    Attributes:
        is_known: Whether the pod has such a container.
        has_ended: Whether it has ended and will not start again.
    """

    is_known: bool
    has_ended: bool


async def look(
    client: Client, namespace: str, pod: str, container: str, uid: str | None
) -> ContainerState | None:
    """Return a container's state; None if the pod is gone, or is another one than `uid`.

    A server that is away is waited for.

    Raises:
        ApiError: The server refuses for good.
    """
    waits = Backoff()
    while True:
        try:
            return _state(await client.get(_PODS, pod, namespace), container, uid)
        except NotFound:
            return None
        except ApiError as error:
            if not error.is_transient:
                raise
        except ConnectionFailed:
            pass
        await asyncio.sleep(waits.next())


def _state(found: _Pod, container: str, uid: str | None) -> ContainerState | None:
    if uid is not None and found.metadata.uid != uid:
        return None
    known = {one.name for one in (*found.spec.containers, *found.spec.init_containers)}
    return ContainerState(container in known, _has_ended(found, container))


def _has_ended(found: _Pod, container: str) -> bool:
    if found.status.phase in ("Succeeded", "Failed"):
        return True
    statuses = (*found.status.container_statuses, *found.status.init_container_statuses)
    state = next((one.state for one in statuses if one.name == container), _State())
    if state.terminated is None:
        return False
    policy = found.spec.restart_policy
    return policy == "Never" or (policy == "OnFailure" and state.terminated.exit_code == 0)
