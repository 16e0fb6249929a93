"""Finds out why a pod is pending: asks the scheduler that leads, or decides on API objects."""

import asyncio
import time
from typing import Final

import aiohttp
import msgspec
from msgspec.structs import replace

from alnair.kube.client import Client
from alnair.kube.errors import NotFound
from alnair.kube.objects import wire
from alnair.kube.objects.pod_projection import PodProjector
from alnair.kube.resources import PODS
from alnair.live.engine_feed import Feed
from alnair.live.scheduler_lease import lease
from alnair.model import names
from alnair.model.workload import Pod
from alnair.scheduler.advice.diagnose import diagnose
from alnair.scheduler.advice.diagnosis import Diagnosis
from alnair.scheduler.engine import events
from alnair.scheduler.engine.engine import Engine
from alnair.scheduler.profiles import profiles

_ASK: Final = aiohttp.ClientTimeout(total=20)
_READ_SECONDS: Final = 60.0
_POD: Final = PODS.typed(wire.PodWire)


class ExplainError(Exception):
    """Nothing can be explained; says why and what to do."""


async def explain(client: Client, namespace: str, name: str, *, offline: bool = False) -> Diagnosis:
    """Return why the pod is where it is.

    Args:
        client: of the cluster.
        namespace: of the pod.
        name: of the pod.
        offline: do not ask the scheduler.

    Raises:
        ExplainError: there is no such pod, or the cluster cannot be read.
    """
    pod = await _pod(client, namespace, name)
    diagnosis = _settled(pod)
    if diagnosis is not None:
        return diagnosis
    notes: tuple[str, ...] = ()
    if pod.scheduler not in names.SCHEDULERS:
        whose = f"it is a pod of the scheduler {pod.scheduler!r}"
        notes = (f"{whose}: this is what {names.SCHEDULER} would say of it",)
    elif not offline:
        answer = await _asked(client, pod)
        if isinstance(answer, Diagnosis):
            return answer
        notes = (f"{answer}: computed here from the API objects, so without its queue",)
    return await _computed(client, pod, notes)


async def _pod(client: Client, namespace: str, name: str) -> Pod:
    try:
        return PodProjector()(await client.get(_POD, name, namespace))
    except NotFound:
        pass
    found = await client.list(_POD, field_selector=f"metadata.name={name}")
    others = sorted(p.metadata.namespace or "" for p in found.items)
    hint = "list them with 'kubectl get pods -A'"
    if others:
        hint = f"there is one in {', '.join(others)}: add '-n {others[0]}'"
    raise ExplainError(f"no pod {name} in namespace {namespace}; {hint}")


def _settled(pod: Pod) -> Diagnosis | None:
    """Return what there is to say of a pod that needs no node, or None."""
    about = Diagnosis(f"{pod.namespace}/{pod.name}", pod.scheduler, "bound", source="offline")
    if pod.finished:
        return replace(about, stage="finished", node=pod.node)
    if pod.node:
        return replace(about, node=pod.node, since=pod.bound_at)
    return None


async def _asked(client: Client, pod: Pod) -> Diagnosis | str:
    """Return what the scheduler says, or why it says nothing."""
    held = await lease(client)
    if held is None or not held.url:
        return "no scheduler leads"
    who = f"the scheduler {held.spec.holder_identity}"
    query = {"pod": f"{pod.namespace}/{pod.name}"}
    try:
        async with (
            aiohttp.ClientSession(timeout=_ASK) as session,
            session.get(f"{held.url}/debug/explain", params=query) as answer,
        ):
            if answer.status != 200:
                return f"{who} says: {(await answer.text()).strip()}"
            return msgspec.json.decode(await answer.read(), type=Diagnosis)
    except (aiohttp.ClientError, TimeoutError, msgspec.MsgspecError):
        return f"{who} cannot be reached at {held.url}"


async def _computed(client: Client, pod: Pod, notes: tuple[str, ...]) -> Diagnosis:
    """Return what a scheduler would say that starts now and knows what the API server does."""
    feed = Feed(client)
    following = asyncio.create_task(feed.run())
    try:
        await asyncio.wait_for(feed.synced(), _READ_SECONDS)
        known = list(feed.everything())
    except TimeoutError:
        raise ExplainError(
            f"nodes and pods could not be read within {_READ_SECONDS:.0f} s: "
            "you must be allowed to list and watch them"
        ) from None
    finally:
        following.cancel()
    engine = Engine(profiles())
    now = time.time()
    engine.learn([e for e in known if not _is(e, pod)], now)
    ours = pod if pod.scheduler in names.SCHEDULERS else replace(pod, scheduler=names.SCHEDULER)
    engine.learn([events.PodChanged(ours)], now)
    engine.step((), now, limit=0)
    found = diagnose(engine.view, engine.view.pods[pod.uid], now)
    # A queue that nothing has been taken from says nothing about the real one.
    return replace(found, scheduler=pod.scheduler, notes=notes, queue=None, source="offline")


def _is(event: events.Event, pod: Pod) -> bool:
    return isinstance(event, events.PodChanged) and event.pod.uid == pod.uid
