"""What the process says about itself over HTTP: health, readiness, figures, decisions."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence

import msgspec
from aiohttp import web
from prometheus_client.metrics_core import Metric

from alnair.model.action import Action, Bind, Evict, Nominate, Report, WritePlan
from alnair.model.percentiles import nearest_rank
from alnair.processes.scheduler.loop import Decisions
from alnair.scheduler.advice.diagnosis import Diagnosis
from alnair.serving.exposition import endpoint
from alnair.serving.health import add_health
from alnair.snapshots.snapshot import Snapshot, encode


class DecisionReport(msgspec.Struct):
    """Answer of /debug/decisions; the percentiles are null without decisions."""

    count: int
    p50_us: float | None
    p99_us: float | None


class Decision(msgspec.Struct, omit_defaults=True):
    """One of the last decisions, in the answer of /debug/decisions?last=N.

    Attributes:
        time: seconds since the epoch.
        action: Bind, Scheduled (it was bound), FailedScheduling, Evict, Nominate, or WritePlan (a
            gang's).
        object: namespace/name of the pod or the gang.
    """

    time: float
    action: str
    object: str
    node: str = ""
    message: str = ""


class NotLeadingError(Exception):
    """This process stands by and knows nothing of the queue."""


def nothing_known(namespace: str, name: str) -> Diagnosis | None:
    """Know no pod."""
    raise NotLeadingError


def application(
    decisions: Decisions,
    ready: Callable[[], bool],
    metrics: Callable[[], Iterable[Metric]] = tuple,
    snapshot: Callable[[], Snapshot | None] = lambda: None,
    explain: Callable[[str, str], Diagnosis | None] = nothing_known,
) -> web.Application:
    """Return the web application.

    Args:
        decisions: What /debug/decisions reports on.
        ready: Whether the caches are filled; a standby is ready too.
        metrics: Families of /metrics.
        snapshot: What the engine knows; None while this process does not lead.
        explain: Diagnosis of a pod by namespace and name, None if it is not known; raises
            NotLeadingError.
    """

    async def debug_snapshot(_: web.Request) -> web.Response:
        taken = snapshot()
        if taken is None:
            return web.Response(status=503, text="this process stands by: ask the leader")
        # It is values only, so packing it does not hold up the decisions.
        body = await asyncio.to_thread(encode, taken)
        return web.Response(body=body, content_type="application/gzip")

    async def debug_decisions(request: web.Request) -> web.Response:
        if (last := request.query.get("last")) is not None:
            if not last.isdecimal():
                return web.Response(status=400, text=f"last is {last!r}: write how many to show")
            shown = [decision(*each) for each in decisions.last(int(last))]
            return web.Response(body=msgspec.json.encode(shown), content_type="application/json")
        text = request.query.get("since", "0")
        try:
            since = float(text)
        except ValueError:
            return web.Response(
                status=400, text=f"since is {text!r}: write seconds since the epoch"
            )
        report = summary(decisions.since(since))
        return web.Response(body=msgspec.json.encode(report), content_type="application/json")

    app = web.Application()
    add_health(app, ready)
    app.router.add_get("/metrics", endpoint(metrics))
    app.router.add_get("/debug/decisions", debug_decisions)
    app.router.add_get("/debug/snapshot", debug_snapshot)
    app.router.add_get("/debug/explain", _explaining(explain))
    return app


def decision(when: float, action: Action) -> Decision:
    """Return what is shown of an action."""
    match action:
        case Bind(pod, node):
            return Decision(when, "Bind", f"{pod.namespace}/{pod.name}", node=node)
        case Report(pod, kind, message):
            return Decision(when, kind, f"{pod.namespace}/{pod.name}", message=message)
        case Evict(pod, _, message):
            return Decision(when, "Evict", f"{pod.namespace}/{pod.name}", message=message)
        case Nominate(pod, node):
            return Decision(when, "Nominate", f"{pod.namespace}/{pod.name}", node=node)
        case WritePlan(gang):
            return Decision(when, "WritePlan", f"{gang.namespace}/{gang.name}")


def _explaining(
    explain: Callable[[str, str], Diagnosis | None],
) -> Callable[[web.Request], Awaitable[web.Response]]:
    async def debug_explain(request: web.Request) -> web.Response:
        namespace, slash, name = request.query.get("pod", "").partition("/")
        if not (namespace and slash and name):
            return web.Response(status=400, text="write ?pod=NAMESPACE/NAME")
        try:
            found = explain(namespace, name)
        except NotLeadingError:
            return web.Response(status=503, text="this process stands by: ask the one that leads")
        if found is None:
            return web.Response(status=404, text=f"no pod {namespace}/{name} is known here")
        return web.Response(body=msgspec.json.encode(found), content_type="application/json")

    return debug_explain


def summary(seconds: Sequence[float]) -> DecisionReport:
    """Return the count and percentiles (microseconds) of ascending durations."""

    def percentile(percent: int) -> float | None:
        found = nearest_rank(seconds, percent)
        return None if found is None else round(found * 1e6, 1)

    return DecisionReport(len(seconds), percentile(50), percentile(99))
