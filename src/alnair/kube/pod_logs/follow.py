"""Follows one container's log to its end."""

import asyncio
import datetime as dt
from collections.abc import AsyncGenerator

import msgspec

from alnair.kube.backoff import Backoff
from alnair.kube.client import Client
from alnair.kube.errors import (
    ApiError,
    BadRequest,
    ConnectionFailed,
    NotFound,
    ServerUnavailable,
    TooManyRequests,
)
from alnair.kube.objects.wire import ObjectMeta
from alnair.kube.pod_logs.seen_lines import SeenLines
from alnair.kube.pod_logs.stamped_lines import MOST_BYTES, LineCutter, LogLine
from alnair.kube.resources import PODS

#: Seconds without a byte after which a log is asked for again; a silent container costs a request.
_SILENCE = 300.0


class _State(msgspec.Struct):
    terminated: dict[str, object] | None = None


class _ContainerStatus(msgspec.Struct, rename="camel"):
    name: str = ""
    state: _State = msgspec.field(default_factory=_State)


class _PodStatus(msgspec.Struct, rename="camel"):
    phase: str = ""
    container_statuses: list[_ContainerStatus] = []
    init_container_statuses: list[_ContainerStatus] = []


class _Spec(msgspec.Struct, rename="camel"):
    restart_policy: str = "Always"


class _Pod(msgspec.Struct):
    metadata: ObjectMeta
    spec: _Spec
    status: _PodStatus


_PODS = PODS.typed(_Pod)


async def follow(
    client: Client,
    namespace: str,
    pod: str,
    container: str,
    *,
    uid: str | None = None,
    since: float | None = None,
    most_bytes: int = MOST_BYTES,
    silence: float = _SILENCE,
    backoff: Backoff | None = None,
) -> AsyncGenerator[list[LogLine]]:
    """Yield a container's lines in runs, as they come, until it has ended for good.

    A broken connection, a kubelet or an API server that is away for a while: the log is asked for
    again from where it was, and no line comes twice or not at all. What the kubelet itself has
    thrown away by then (rotation, a container that was replaced) is lost. A container that starts
    again goes on in the same stream.

    Args:
        client: Who asks; needs the right to `get` `pods/log` and `pods`.
        namespace: Of the pod.
        pod: Its name.
        container: Which of its containers.
        uid: Of the pod; another pod of the same name is not followed.
        since: Lines from this time on, seconds since the epoch; None for all there are.
        most_bytes: Bytes of a line that are kept.
        silence: Seconds without a byte after which the log is asked for again.
        backoff: Waits after failures.

    Raises:
        ApiError: The server refuses for good: no such right, no such container.
    """
    seen, waits = SeenLines(since), backoff or Backoff()
    path = PODS.item(pod, namespace, "log")
    while True:
        has_ended = await _has_ended(client, namespace, pod, container, uid)
        if has_ended is None:
            return
        query = {"container": container, "follow": "true", "timestamps": "true"}
        if (start := seen.since) is not None:
            query["sinceTime"] = f"{dt.datetime.fromtimestamp(start, dt.UTC):%Y-%m-%dT%H:%M:%SZ}"
        cutter, is_whole = LineCutter(most_bytes), False
        seen.again()
        try:
            async with client.transport.stream(path, query, silence) as stream:
                while data := await stream.readany():
                    lines = [line for line in cutter.feed(data) if seen.is_new(line)]
                    if lines:
                        waits.reset()
                        yield lines
            is_whole = True
        except (ConnectionFailed, ServerUnavailable, TooManyRequests):
            pass
        except BadRequest:  # it has not started yet
            if has_ended:
                raise
        except NotFound:
            if await _has_ended(client, namespace, pod, container, uid) is None:
                return
            raise
        # Only a stream that was opened after the end, and came to its own, has shown all of it.
        if has_ended and is_whole:
            rest = cutter.rest()
            if rest is not None and seen.is_new(rest):
                yield [rest]
            return
        await asyncio.sleep(waits.next())


async def _has_ended(
    client: Client, namespace: str, pod: str, container: str, uid: str | None
) -> bool | None:
    """Tell whether the container has ended and will not start again; None: the pod is gone."""
    waits = Backoff()
    while True:
        try:
            found = await client.get(_PODS, pod, namespace)
            break
        except NotFound:
            return None
        except ApiError as error:
            if not error.is_transient:
                raise
        except ConnectionFailed:
            pass
        await asyncio.sleep(waits.next())
    if uid is not None and found.metadata.uid != uid:
        return None
    if found.status.phase in ("Succeeded", "Failed"):
        return True
    statuses = [*found.status.container_statuses, *found.status.init_container_statuses]
    state = next((one.state for one in statuses if one.name == container), None)
    ended = state.terminated if state else None
    if ended is None:
        return False
    policy = found.spec.restart_policy
    return policy == "Never" or (policy == "OnFailure" and ended.get("exitCode") == 0)
