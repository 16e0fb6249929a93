"""Finds out why a pod is pending: asks the scheduler that leads, or decides on API objects."""

import asyncio
import time
from typing import Final

import msgspec
from msgspec.structs import replace

from alnair.kube.client import Client
from alnair.kube.errors import ApiError, Forbidden, KubeError, NotFound
from alnair.kube.objects import wire
from alnair.kube.objects.pod_projection import PodProjector
from alnair.kube.resources import (
    DEPLOYMENTS,
    ELASTIC_HOROVOD_JOBS,
    ELASTIC_TORCH_JOBS,
    HOROVOD_JOBS,
    JOBS,
    NAMESPACES,
    NODES,
    PODGROUPS,
    PODS,
    STATEFUL_SETS,
)
from alnair.live.container_waits import PodWithContainers, waits
from alnair.live.engine_feed import Feed
from alnair.live.leader import AskError, ask
from alnair.live.scheduler_lease import lease, read
from alnair.live.workload_pods import pod_of
from alnair.model import names
from alnair.model.near_names import near
from alnair.model.plurals import counted
from alnair.model.workload import Pod
from alnair.scheduler.advice.diagnose import diagnose
from alnair.scheduler.advice.diagnosis import Diagnosis, Placement, Stage
from alnair.scheduler.advice.placed import said
from alnair.scheduler.advice.unserved import near_schedulers, under_another, unserved
from alnair.scheduler.engine import events
from alnair.scheduler.engine.engine import Engine
from alnair.scheduler.profiles import profiles

_ASK_SECONDS: Final = 20.0
_READ_SECONDS: Final = 60.0
_DIAGNOSIS: Final = msgspec.json.Decoder(Diagnosis)
_POD: Final = PODS.typed(PodWithContainers)

#: What makes pods, under other names than its own, and how it is written.
_MAKERS: Final = {
    "etj": ELASTIC_TORCH_JOBS,
    "ehj": ELASTIC_HOROVOD_JOBS,
    "hj": HOROVOD_JOBS,
    "job": JOBS,
    "deploy": DEPLOYMENTS,
    "statefulset": STATEFUL_SETS,
    "podgroup": PODGROUPS,
}
_UPSTREAM: Final = "default-scheduler"
#: Age in seconds of a lease that is kept, at most: clocks differ a little.
_LEASE_SECONDS: Final = 60.0


class _Named(msgspec.Struct):
    """An object of which only the name matters."""

    metadata: wire.ObjectMeta


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
    read = await _pod(client, namespace, name)
    found = await _explained(client, read, offline=offline)
    if found.stage == "bound" and (why := waits(read)):
        return replace(found, message=why)
    return found


async def _explained(client: Client, read: PodWithContainers, *, offline: bool) -> Diagnosis:
    pod = PodProjector()(read)
    if pod.finished:
        return _bare(pod, "finished")
    answer: Diagnosis | str = ""
    if not offline:
        answer = await _asked(client, pod)
    if isinstance(answer, Diagnosis):
        if answer.unserved is None:
            return answer
        return await _unserved(client, pod, answer, tried=_is_tried(read))
    notes: tuple[str, ...] = ()
    if answer:
        notes = (f"{answer}: computed here from the API objects, so without its queue",)
    if pod.node:
        return await _placed(client, pod, notes)
    if pod.scheduler not in names.SCHEDULERS:
        known = _not_built_in(pod)
        return await _unserved(client, pod, known, notes, tried=_is_tried(read))
    engine, _ = await _engine(client, pod, pod.scheduler)
    return replace(_computed(engine, pod), notes=notes)


async def explain_workload(
    client: Client, namespace: str, kind: str, name: str, *, offline: bool = False
) -> Diagnosis:
    """Return why the first waiting pod of what made it is where it is; notes say which it is.

    Args:
        client: of the cluster.
        namespace: of the workload.
        kind: as kubectl takes it, such as `job` or `deploy`.
        name: of the workload.
        offline: do not ask the scheduler.

    Raises:
        WorkloadError: there is no such workload, or it has no pods.
        ExplainError: the cluster cannot be read.
    """
    pod, which = await pod_of(client, namespace, kind, name)
    found = await explain(client, namespace, pod, offline=offline)
    return replace(found, notes=(*which, *found.notes))


def _bare(pod: Pod, stage: Stage) -> Diagnosis:
    """Return what the pod says itself."""
    about = Diagnosis(f"{pod.namespace}/{pod.name}", pod.scheduler, stage, source="offline")
    return replace(about, node=pod.node, since=pod.bound_at if stage == "bound" else 0.0)


async def _placed(client: Client, pod: Pod, notes: tuple[str, ...]) -> Diagnosis:
    """Return what a pod that has a node got; those who may not read the cluster learn that."""
    try:
        engine, _ = await _engine(client, pod, pod.scheduler)
    except (ExplainError, Forbidden) as error:
        why = f"which node was the next best is not known: {error}"
        return replace(_bare(pod, "bound"), placement=Placement(said(pod)), notes=(*notes, why))
    if pod.scheduler not in names.SCHEDULERS:
        whose = f"its scheduler is {pod.scheduler!r}"
        notes = (*notes, f"{whose}, whose next best node only that scheduler knows")
    return replace(_computed(engine, pod), notes=notes)


def _not_built_in(pod: Pod) -> Diagnosis:
    """Return what can be said of a name where no scheduler says what it serves."""
    known = unserved(pod, names.SCHEDULERS)
    assert known.unserved is not None
    return replace(
        known,
        message=f"no profile that Alnair comes with has the name {pod.scheduler!r}",
        unserved=replace(known.unserved, source="built-in"),
    )


async def _unserved(
    client: Client, pod: Pod, known: Diagnosis, notes: tuple[str, ...] = (), *, tried: bool
) -> Diagnosis:
    """Add to a diagnosis of this kind what is seen of another scheduler, and what ours would do."""
    name = known.unserved
    assert name is not None
    upstream = await _kube_scheduler(client)
    if upstream:
        close = near_schedulers(pod.scheduler, (*name.served, _UPSTREAM))
        name = replace(name, near=close)
    taken = next((each for each in name.near if each in names.SCHEDULERS), names.SCHEDULER)
    engine, pods = await _engine(client, pod, taken)
    elsewhere = upstream if pod.scheduler == _UPSTREAM else ""
    placed = sum(each.scheduler == pod.scheduler and bool(each.node) for each in pods)
    if tried and not elsewhere:
        elsewhere = "a scheduler has tried it: 'kubectl describe pod' shows what it says"
    elif placed and not elsewhere:
        elsewhere = (
            f"{counted(placed, 'pod')} with its name got a node, so something serves it, or did"
        )
    found = under_another(
        replace(known, unserved=replace(name, elsewhere=elsewhere)), taken, _computed(engine, pod)
    )
    whose = f"it is a pod of the scheduler {pod.scheduler!r}"
    return replace(
        found, notes=(f"{whose}: this is what {taken} would say of it", *notes), source="offline"
    )


async def _kube_scheduler(client: Client) -> str:
    """Return what its lease says of kube-scheduler; empty if there is none that leads."""
    held = await lease(client, "kube-scheduler", "kube-system")
    if held is None or not held.spec.holder_identity or held.spec.renew_time is None:
        return ""
    age = time.time() - held.spec.renew_time.timestamp()
    if age > max(held.spec.lease_duration_seconds, _LEASE_SECONDS):
        return ""
    return (
        f"kube-scheduler runs here ({held.spec.holder_identity}) and serves {_UPSTREAM}, unless it "
        "is configured otherwise: 'kubectl describe pod' shows its reasons"
    )


async def _pod(client: Client, namespace: str, name: str) -> PodWithContainers:
    try:
        return await client.get(_POD, name, namespace)
    except NotFound:
        pass
    found = await client.list(_POD, field_selector=f"metadata.name={name}")
    others = sorted(p.metadata.namespace or "" for p in found.items)
    hint = "list them with 'kubectl get pods -A'"
    if others:
        hint = f"there is one in {', '.join(others)}: add '-n {others[0]}'"
    elif makers := await _makers(client, namespace, name):
        hint = f"did you mean {' or '.join(makers)}?"
    elif close := await _near_pods(client, namespace, name):
        hint = f"did you mean {' or '.join(close)}?"
    elif close := await _near_namespaces(client, namespace):
        hint = f"there is no such namespace: did you mean '-n {close[0]}'?"
    raise ExplainError(f"no pod {name} in namespace {namespace}; {hint}")


def _is_tried(pod: wire.PodWire) -> bool:
    """Return whether a scheduler has said that the pod does not fit."""
    conditions = (pod.status and pod.status.conditions) or ()
    return any(c.type == "PodScheduled" and c.status == "False" for c in conditions)


async def _makers(client: Client, namespace: str, name: str) -> list[str]:
    """Return what has the name and makes pods, as this command takes it."""

    async def is_there(kind: str) -> bool:
        try:
            await client.get(_MAKERS[kind].typed(_Named), name, namespace)
        except ApiError:  # nor is it for who may not know
            return False
        return True

    there = await asyncio.gather(*map(is_there, _MAKERS))
    return [f"{kind}/{name}" for kind, found in zip(_MAKERS, there, strict=True) if found]


async def _near_pods(client: Client, namespace: str, name: str) -> tuple[str, ...]:
    pods = (await client.list(PODS.typed(_Named), namespace)).items
    return near(name, (pod.metadata.name or "" for pod in pods))


async def _near_namespaces(client: Client, namespace: str) -> tuple[str, ...]:
    """Return the namespaces that may have been meant; none if it is there, or nobody may know."""
    try:
        found = (await client.list(NAMESPACES.typed(_Named))).items
    except ApiError:
        return ()
    there = {each.metadata.name or "" for each in found}
    return () if namespace in there else near(namespace, there)


async def _asked(client: Client, pod: Pod) -> Diagnosis | str:
    """Return what the scheduler says, or why it says nothing."""
    try:
        held = await read(client, names.SCHEDULER)
    except NotFound:
        return "no scheduler leads"
    except KubeError as error:
        return f"which scheduler leads cannot be read: {error}"
    if not held.spec.holder_identity:
        return "no scheduler leads"
    query = {"pod": f"{pod.namespace}/{pod.name}"}
    try:
        return _DIAGNOSIS.decode(await ask(client, held, "/debug/explain", query, _ASK_SECONDS))
    except AskError as error:
        return str(error)
    except msgspec.MsgspecError:
        return f"the scheduler {held.spec.holder_identity} is of another version"


async def _engine(client: Client, pod: Pod, scheduler: str) -> tuple[Engine, list[Pod]]:
    """Return an engine that starts now and knows what the API server does, and all pods.

    Args:
        client: of the cluster.
        pod: to be told last, so that it is there even if it was made meanwhile.
        scheduler: the name that it gets.
    """
    for kind in (NODES, PODS):
        try:
            await client.raw("GET", kind.collection(), query={"limit": "1"})
        except Forbidden as error:
            raise ExplainError(
                f"it cannot be computed here: {error}; ask for the right to list nodes and pods, or"
                " to ask the scheduler"
            ) from error
    feed = Feed(client)
    following = asyncio.create_task(feed.run())
    try:
        async with asyncio.timeout(_READ_SECONDS):
            await feed.synced()
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
    engine.learn([events.PodChanged(replace(pod, scheduler=scheduler))], now)
    engine.step((), now, limit=0)
    return engine, [e.pod for e in known if isinstance(e, events.PodChanged)]


def _computed(engine: Engine, pod: Pod) -> Diagnosis:
    """Return what the engine says of the pod."""
    found = diagnose(engine.view, engine.view.pods[pod.uid], time.time())
    # A queue that nothing has been taken from says nothing about the real one.
    return replace(found, queue=None, source="offline")


def _is(event: events.Event, pod: Pod) -> bool:
    return isinstance(event, events.PodChanged) and event.pod.uid == pod.uid
