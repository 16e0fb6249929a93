"""What a history in a database knows of a cluster, as a record of it would."""

import msgspec

from alnair.history.database import facts, opening, queries
from alnair.live.recording.record_lines import NodeRecord, PodRecord
from alnair.live.recording.recorded_cluster import Known, KnownNode, KnownPod


def load(name: str, since: float | None = None) -> Known:
    """Return what is known of a cluster.

    Args:
        name: URL or path of the history.
        since: Only pods that lasted after this, seconds since the epoch.

    Raises:
        HistoryError: It cannot be read.
    """
    known = Known()
    with opening.readable(name) as connection:
        for record, up in queries.nodes(connection):
            node = msgspec.convert(record, NodeRecord)
            pairs = [(float(begin or 0.0), end) for begin, end in up]
            known.nodes[node.name] = KnownNode(node, pairs)
        for record, row in queries.pods_of_time(connection, since):
            pod = msgspec.convert(record, PodRecord)
            cut = row["outcome"] if row["outcome"] in ("preempted", "evicted", "lost") else pod.cut
            pod = msgspec.structs.replace(pod, job=f"{row['kind']}/{row['job_name']}", cut=cut)
            bound = pod.bound or row["started"] or (pod.created if pod.node else None)
            found = KnownPod(pod, bound, row["ended"] if pod.phase else None, row["gone"])
            if row["gpu_util"] is not None and bound is not None:
                found.utils = [(bound, row["gpu_util"])]
            known.pods[pod.uid] = found
            if pod.group and row["least"]:
                known.groups[pod.namespace, pod.group] = row["least"]
        known.last = facts.looked(connection) or 0.0
        known.decided = facts.decided(connection)
    known.first = min((pod.record.created for pod in known.pods.values()), default=known.last)
    known.last = max([known.last, *(pod.gone or pod.ended or 0.0 for pod in known.pods.values())])
    return known
