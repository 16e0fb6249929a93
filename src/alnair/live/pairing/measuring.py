"""Rates of workloads that run as Jobs at the same time, from their logs."""

import asyncio
import contextlib
import uuid
from collections.abc import Callable, Sequence

import msgspec

from alnair.kube.client import Client
from alnair.kube.pod_logs.follow import follow
from alnair.kube.resources import JOBS, PODS, Manifest
from alnair.live.pairing.pair_job import CONTAINER, LABEL, JobOptions, pair_job
from alnair.live.pairing.same_gpu import check_alone_on_gpu
from alnair.node.pairing.measuring import ENOUGH, LONGER, Times, rate
from alnair.node.pairing.workload import Command, RunError
from alnair.profiler.logs.step_counter import StepCounter

#: Seconds between two looks at pods that start or end.
_LOOK = 0.5
_NANO = 1e9
#: Seconds that ended pods have until they are gone.
_LEAVING = 60.0


class _Seen:
    """What a pod's log has shown.

    Attributes:
        steps: Times by the node's clock, in seconds, and steps done by then.
        tail: The last lines, for people.
        ended: It will show no more.
    """

    def __init__(self, name: str, command: Command) -> None:
        self.name = name
        self.steps: list[tuple[float, float]] = []
        self.tail: list[str] = []
        self.ended = False
        self._counter = StepCounter(command.pattern)

    def take(self, at: int, text: bytes) -> None:
        self.tail = [*self.tail[-7:], text.decode("utf-8", "replace")[:200]]
        if self._counter.feed(text + b"\n") and self._counter.done is not None:
            self.steps.append((at / _NANO, self._counter.done))


async def cluster_rates(
    client: Client, commands: Sequence[Command], times: Times, options: JobOptions
) -> tuple[float, ...]:
    """Run workloads as Jobs at the same time; return the steps per second of each.

    All is measured by the clock of the node, which stamps the lines of logs. The Jobs are removed
    when it is done, fails or is interrupted; and by the cluster itself, should this process be
    killed.

    Args:
        client: May make and delete Jobs, list pods and read their logs.
        commands: One, or two that share a GPU.
        times: As on one machine.
        options: Where and how they run.

    Raises:
        RunError: One does not start, ends early, shows no steps, or has not the same GPU for
            itself as the other.
    """
    label = f"alnair-{uuid.uuid4().hex[:10]}"
    try:
        pods = []
        for which, command in enumerate(commands):
            job = pair_job(f"{label}-{which}", label, command.words, which, options)
            await client.create(JOBS, job)
            # One after the other: the second one's slice is put on the GPU of the first.
            pods.append(await _running(client, f"{label}-{which}", options, times.patience))
        await check_alone_on_gpu(client, pods, options.node)
        seen = [_Seen(command.words[0], command) for command in commands]
        async with asyncio.TaskGroup() as group:
            readers = [
                group.create_task(_read(client, pod, options.namespace, one))
                for pod, one in zip(pods, seen, strict=True)
            ]
            try:
                return await _measured(seen, times)
            finally:
                for reader in readers:
                    reader.cancel()
    except BaseExceptionGroup as several:
        raise several.exceptions[0] from None
    finally:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.shield(_remove(client, label, options.namespace))


async def _running(client: Client, job: str, options: JobOptions, patience: float) -> Manifest:
    """Wait until the Job's pod runs; return it."""
    said = "it has no pod yet"
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(patience):
            while True:
                found = await client.list(PODS, options.namespace, label_selector=f"job-name={job}")
                for pod in found.items:
                    phase = pod.get("status", {}).get("phase", "")
                    if phase == "Running":
                        return pod
                    said = _why(pod)
                    if phase in ("Failed", "Succeeded") or "ErrImage" in said:
                        raise RunError(f"{job} on {options.node}: {said}")
                await asyncio.sleep(_LOOK)
    raise RunError(
        f"{job} does not run on {options.node} after {patience:g} s: {said}; see that the node has"
        f" a GPU with two times {options.memory_mib} MiB free, and the image {options.image}"
    )


def _why(pod: Manifest) -> str:
    """Return why a pod does not run, in Kubernetes' words."""
    status = pod.get("status", {})
    for one in status.get("containerStatuses", []):
        for state in one.get("state", {}).values():
            if state.get("reason"):
                return f"{state['reason']} {state.get('message', '')}".strip()
    for one in status.get("conditions", []):
        if one.get("status") == "False" and one.get("message"):
            return str(one["message"])
    return str(status.get("message") or status.get("reason") or status.get("phase", ""))


async def _read(client: Client, pod: Manifest, namespace: str, seen: _Seen) -> None:
    meta = pod["metadata"]
    async for lines in follow(client, namespace, meta["name"], CONTAINER, uid=meta["uid"]):
        for line in lines:
            seen.take(line.at, line.text)
    seen.ended = True


async def _measured(seen: Sequence[_Seen], times: Times) -> tuple[float, ...]:
    """Wait until enough was seen; return the rates."""
    await _until(seen, times.patience, lambda: all(one.steps for one in seen))
    silent = [one.name for one in seen if not one.steps]
    if silent:
        raise RunError(
            f"{silent[0]} has shown no step in {times.patience:g} s: say with --pattern how its"
            " output counts them, and see that it is not buffered"
        )
    begin = max(one.steps[0][0] for one in seen) + times.warm_up
    end = begin + times.measured
    patience = times.warm_up + LONGER * times.measured + _LOOK
    await _until(seen, patience, lambda: all(_has_shown(one, begin, end) for one in seen))
    last = max(end, min(one.steps[-1][0] for one in seen))
    return tuple(rate(one.name, one.steps, begin, last) for one in seen)


def _has_shown(one: _Seen, begin: float, end: float) -> bool:
    return one.steps[-1][0] >= end and sum(at >= begin for at, _ in one.steps) >= ENOUGH


async def _until(seen: Sequence[_Seen], patience: float, holds: Callable[[], bool]) -> None:
    """Wait until something holds; a workload that ends before is an error."""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(patience):
            while not holds():
                for one in seen:
                    if one.ended:
                        said = "\n".join(one.tail) or "(nothing)"
                        raise RunError(
                            f"{one.name} ended before it was measured: it must run until it is"
                            f" ended. It said last:\n{said}"
                        )
                await asyncio.sleep(_LOOK / 5)


async def _remove(client: Client, label: str, namespace: str) -> None:
    """Remove the Jobs with their pods, and wait until these have given back their GPU."""
    for job in (await client.list(JOBS, namespace, label_selector=f"{LABEL}={label}")).items:
        await client.delete(JOBS, job["metadata"]["name"], namespace, propagation="Background")
    for _ in range(round(_LEAVING / _LOOK)):
        if not (await client.list(_PODS, namespace, label_selector=f"{LABEL}={label}")).items:
            return
        await asyncio.sleep(_LOOK)


class _Named(msgspec.Struct):
    """A pod of which only counts that it is there."""


_PODS = PODS.typed(_Named)
