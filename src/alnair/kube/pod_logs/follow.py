"""Follows one container's log to its end."""

import asyncio
import datetime as dt
from collections.abc import AsyncGenerator

from alnair.kube.backoff import Backoff
from alnair.kube.client import Client
from alnair.kube.errors import (
    BadRequest,
    ConnectionFailed,
    NotFound,
    ServerUnavailable,
    TooManyRequests,
)
from alnair.kube.pod_logs.container_state import look
from alnair.kube.pod_logs.seen_lines import SeenLines
from alnair.kube.pod_logs.stamped_lines import MOST_BYTES, LineCutter, LogLine
from alnair.kube.resources import PODS

#: Seconds without a byte after which a log is asked for again; a silent container costs a request.
_SILENCE = 300.0


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
        state = await look(client, namespace, pod, container, uid)
        if state is None:
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
        except (BadRequest, NotFound):
            # It has not started yet, or never did, or the kubelet has removed it already.
            if not state.is_known:
                raise
            if state.has_ended:
                return
        # Only a stream that was opened after the end, and came to its own, has shown all of it.
        if state.has_ended and is_whole:
            rest = cutter.rest()
            if rest is not None and seen.is_new(rest):
                yield [rest]
            return
        await asyncio.sleep(waits.next())
