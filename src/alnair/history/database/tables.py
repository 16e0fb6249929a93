"""The tables, as the newest migration leaves them. Times are seconds since the epoch."""

from typing import Any, Final

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    Double,
    ForeignKey,
    Index,
    Integer,
    MetaData,
    Table,
    Text,
)
from sqlalchemy.dialects.postgresql import JSONB

METADATA: Final = MetaData()


_AMOUNTS: Final = ("gpu_seconds", "measured_gpu_seconds", "used_gpu_seconds")
_HOURS: Final = ("completed", "gpus", *_AMOUNTS)


def _json(name: str) -> "Column[Any]":
    return Column(
        name, JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
    )


def _text(name: str) -> Column[str]:
    return Column(name, Text, nullable=False, server_default="")


def _amount(name: str) -> Column[float]:
    return Column(name, Double, nullable=False, server_default="0")


#: A job: what one controller, the topmost that does not recur, or a lone pod did.
#: `series` is the same for all runs of one work; `duration` is from its first start to its end;
#: `outcome` is empty while it lasts. `gpus` is the most that its pods asked for at one time.
#: `least` is how many pods a gang needs, 0 of what is none.
#: `gpu_seconds` is what its pods held, `measured_gpu_seconds` the part of it of which the use is
#: known, `used_gpu_seconds` that use, and `wasted_gpu_seconds` the difference.
JOBS: Final = Table(
    "jobs",
    METADATA,
    Column("uid", Text, primary_key=True),
    *(_text(name) for name in ("namespace", "api_group", "api_version", "kind", "name", "series")),
    *(_text(name) for name in ("user", "scheduler", "gpu_model")),
    _json("labels"),
    _amount("submitted"),
    Column("started", Double),
    Column("completed", Double),
    Column("duration", Double),
    _text("outcome"),
    _amount("gpus"),
    Column("pods", Integer, nullable=False, server_default="0"),
    *(_amount(name) for name in _AMOUNTS),
    _amount("wasted_gpu_seconds"),
    Column("gpu_memory_mib", Double),
    _amount("changed"),
    Column("least", Integer, nullable=False, server_default="0"),
    Index("jobs_by_time", "submitted"),
    Index("jobs_by_namespace", "namespace", "submitted"),
    Index("jobs_by_user", "user", "submitted"),
    Index("jobs_by_kind", "kind", "submitted"),
    Index("jobs_by_outcome", "outcome", "submitted"),
    Index("jobs_by_namespace_and_outcome", "namespace", "outcome", "submitted"),
    Index("jobs_by_name", "name", "namespace", "kind"),
    Index("jobs_by_series", "namespace", "series", "submitted"),
    Index("jobs_by_change", "changed"),
    Index("jobs_by_waste", "wasted_gpu_seconds"),
    # With all that is added up: the rows themselves are not read.
    Index("jobs_by_end", "completed", "namespace", "user", "gpus", *_AMOUNTS),
    Index("jobs_hours_by_namespace", "namespace", *_HOURS),
    Index("jobs_hours_by_user", "user", *_HOURS),
)

#: A pod's life. `record` is what the API server said of it, `usage` what its node's agent measured;
#: `final`: that is the whole of its life. `gone` is when it was deleted, `bound` when it got its
#: node, and `waited` what was said last of why it had none, also of one that has one now.
PODS: Final = Table(
    "pods",
    METADATA,
    Column("uid", Text, primary_key=True),
    Column("job", Text, ForeignKey("jobs.uid", ondelete="CASCADE"), nullable=False),
    *(_text(name) for name in ("namespace", "name", "node", "gpu_model", "outcome")),
    _amount("created"),
    Column("started", Double),
    Column("ended", Double),
    Column("gone", Double),
    _amount("gpus"),
    _json("record"),
    _json("usage"),
    Column("final", Boolean, nullable=False, server_default="0"),
    Column("gpu_util", Double),
    Column("gpu_memory_mib", Double),
    *(_amount(name) for name in _AMOUNTS),
    Column("bound", Double),
    _text("waited"),
    Index("pods_by_job", "job"),
    Index("pods_by_name", "namespace", "name"),
    Index("pods_by_end", "ended"),
)

#: What analysis found of a job: its workload, its progress; one document for each kind of finding.
FINDINGS: Final = Table(
    "findings",
    METADATA,
    Column("job", Text, ForeignKey("jobs.uid", ondelete="CASCADE"), primary_key=True),
    Column("kind", Text, primary_key=True),
    _amount("changed"),
    _json("document"),
)

#: Nodes, what was known of them last, and when they were ready: pairs, the last one open.
NODES: Final = Table(
    "nodes",
    METADATA,
    Column("name", Text, primary_key=True),
    _json("record"),
    _json("up"),
)

#: How far the outbox of each node's agent has been read.
POSITIONS: Final = Table(
    "positions",
    METADATA,
    Column("node", Text, primary_key=True),
    _text("stream"),
    Column("seq", Integer, nullable=False, server_default="0"),
    _amount("changed"),
)

#: GPU hours of the jobs that ended on a day (UTC, days since the epoch); `dimension` says whether
#: `name` is a namespace or a user. They follow from the jobs.
DAYS: Final = Table(
    "days",
    METADATA,
    Column("day", Integer, primary_key=True, autoincrement=False),
    Column("dimension", Text, primary_key=True),
    Column("name", Text, primary_key=True),
    Column("jobs", Integer, nullable=False, server_default="0"),
    *(_amount(name) for name in _AMOUNTS),
)

#: Decisions of the scheduler, and the seconds that they took, in each minute since the epoch.
DECISIONS: Final = Table(
    "decisions",
    METADATA,
    Column("minute", Integer, primary_key=True, autoincrement=False),
    Column("count", Integer, nullable=False, server_default="0"),
    _amount("seconds"),
)

#: What is true of the whole: `looked` is when somebody last looked at the cluster, and `cluster` is
#: which one it is.
FACTS: Final = Table(
    "facts",
    METADATA,
    Column("name", Text, primary_key=True),
    Column("value", Double, nullable=False),
    _text("text"),
)
