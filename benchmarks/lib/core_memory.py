"""What 5,000 nodes and 50,000 bound pods cost in memory, for `decision_core.py --kind memory`.

A process of its own decodes and projects objects as the live scheduler's feed does, keeps what the
feed keeps, tells all of it to an engine, and decides on pods of many classes. Its peak is the
figure; JSON text is made piece by piece and dropped, as pages of a list are.
"""

import itertools
import json
import multiprocessing
import resource
from concurrent.futures import ProcessPoolExecutor
from typing import Any, Final

from alnair.kube.codec import codec_of
from alnair.kube.objects import wire
from alnair.kube.objects.node_projection import project_node
from alnair.kube.objects.pod_projection import PodProjector
from alnair.kube.objects.simulated_nodes import manifest
from alnair.model import names
from alnair.model.action import Bind
from alnair.model.workload import Pod, PodSpec
from alnair.scheduler.engine import events
from alnair.scheduler.engine.engine import Engine
from alnair.scheduler.profiles import profiles
from alnair.traces.openb import TraceNode
from lib.kube_client_pods import make_pods

LIMIT_MB: Final = 250.0
#: Classes that are decided on, more than evaluations are kept of.
_CLASSES: Final = 300
#: Events that an engine is told of at once, as by `processes.scheduler.loop`.
_BATCH: Final = 1000
_NOW: Final = "2026-11-21T00:00:00Z"


def report(nodes: int, pods: int) -> dict[str, Any]:
    """Measure in a process of its own, so that nothing else counts."""
    with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as other:
        found: dict[str, Any] = other.submit(hold, nodes, pods).result()
    peak = found["peak_rss_mb"]
    return found | {"targets": {"peak_rss_mb": {"below": LIMIT_MB, "met": peak < LIMIT_MB}}}


def hold(nodes: int, pods: int) -> dict[str, float]:
    """Read everything as the feed does, decide a little, and return the peak."""
    start = _peak_mb()
    decode = codec_of(wire.NodeWire).object.decode
    kept_nodes = {}
    for index in range(nodes):
        # The names that the pods of `kube_client_pods` are on.
        trace = TraceNode(f"gpu-node-{index:04}", 192_000, 2_000_000, 8, "V100M32")
        node = project_node(decode(json.dumps(manifest(trace, _NOW)).encode()))
        kept_nodes["", node.name] = node
    decode_pod, project = codec_of(wire.PodWire).object.decode, PodProjector()
    kept: dict[tuple[str, str], Pod] = {}
    for text in make_pods(pods):
        pod = project(decode_pod(text))
        kept[pod.namespace, pod.name] = pod
    feed = _peak_mb()
    engine = Engine(profiles())
    engine.learn([events.NodeChanged(node) for node in kept_nodes.values()], 0.0)
    left = map(events.PodChanged, kept.values())
    while batch := list(itertools.islice(left, _BATCH)):
        engine.learn(batch, 0.0)
    new = [_asking(index) for index in range(_CLASSES)]
    actions = engine.step([events.PodChanged(pod) for pod in new], 1.0, _CLASSES)
    return {
        "peak_rss_mb": round(_peak_mb(), 1),
        "before_mb": round(start, 1),
        "with_feed_mb": round(feed, 1),
        "bound_pods": sum(bool(pod.node) for pod in kept.values()),
        "booked_pods": sum(record.row >= 0 for record in engine.view.pods.values()),
        "classes": len({pod.spec for pod in kept.values()}),
        "decided": sum(isinstance(action, Bind) for action in actions),
    }


def _asking(index: int) -> Pod:
    """A pod of a class of its own that fits on nodes however full of GPU pods they are."""
    spec = PodSpec(requests=(("cpu", 1 + index), ("memory", 1), ("pods", 1)), scored_cpu=1 + index)
    name = f"new-{index}"
    return Pod(name, "default", name, spec, names.SCHEDULER, 0.0)


def _peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
