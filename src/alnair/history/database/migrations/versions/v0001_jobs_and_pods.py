"""Jobs, pods, findings, nodes, and positions of outboxes."""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def _json(name: str) -> "sa.Column[Any]":
    kind = sa.JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
    return sa.Column(name, kind)


def _texts(*names: str) -> "list[sa.Column[Any]]":
    return [sa.Column(name, sa.Text, nullable=False, server_default="") for name in names]


def _amounts(*names: str) -> "list[sa.Column[Any]]":
    return [sa.Column(name, sa.Double, nullable=False, server_default="0") for name in names]


def _doubles(*names: str) -> "list[sa.Column[Any]]":
    return [sa.Column(name, sa.Double) for name in names]


def _job() -> "sa.Column[Any]":
    return sa.Column("job", sa.Text, sa.ForeignKey("jobs.uid", ondelete="CASCADE"), nullable=False)


def upgrade() -> None:
    """Make all tables."""
    op.create_table(
        "jobs",
        sa.Column("uid", sa.Text, primary_key=True),
        *_texts("namespace", "api_group", "api_version", "kind", "name", "series"),
        *_texts("user", "scheduler", "gpu_model"),
        _json("labels"),
        *_amounts("submitted"),
        *_doubles("started", "completed", "duration"),
        *_texts("outcome"),
        *_amounts("gpus"),
        sa.Column("pods", sa.Integer, nullable=False, server_default="0"),
        *_amounts("gpu_seconds", "measured_gpu_seconds", "used_gpu_seconds"),
        *_amounts("wasted_gpu_seconds"),
        *_doubles("gpu_memory_mib"),
        *_amounts("changed"),
    )
    op.create_index("jobs_by_time", "jobs", ["submitted"])
    op.create_index("jobs_by_namespace", "jobs", ["namespace", "submitted"])
    op.create_index("jobs_by_user", "jobs", ["user", "submitted"])
    op.create_index("jobs_by_outcome", "jobs", ["outcome", "submitted"])
    op.create_index("jobs_by_namespace_and_outcome", "jobs", ["namespace", "outcome", "submitted"])
    op.create_index("jobs_by_name", "jobs", ["namespace", "name", "kind"])
    op.create_index("jobs_by_series", "jobs", ["namespace", "series", "submitted"])
    op.create_index("jobs_by_end", "jobs", ["completed"])
    op.create_index("jobs_by_change", "jobs", ["changed"])
    op.create_index("jobs_by_waste", "jobs", ["wasted_gpu_seconds"])
    hours = ["completed", "gpus", "gpu_seconds", "measured_gpu_seconds", "used_gpu_seconds"]
    op.create_index("jobs_hours_by_namespace", "jobs", ["namespace", *hours])
    op.create_index("jobs_hours_by_user", "jobs", ["user", *hours])
    op.create_table(
        "pods",
        sa.Column("uid", sa.Text, primary_key=True),
        _job(),
        *_texts("namespace", "name", "node", "gpu_model", "outcome"),
        *_amounts("created"),
        *_doubles("started", "ended", "gone"),
        *_amounts("gpus"),
        _json("record"),
        _json("usage"),
        sa.Column("final", sa.Boolean, nullable=False, server_default="0"),
        *_doubles("gpu_util", "gpu_memory_mib"),
        *_amounts("gpu_seconds", "measured_gpu_seconds", "used_gpu_seconds"),
    )
    op.create_index("pods_by_job", "pods", ["job"])
    op.create_index("pods_by_name", "pods", ["namespace", "name"])
    op.create_index("pods_by_end", "pods", ["ended"])
    op.create_table(
        "findings",
        sa.Column("job", sa.Text, sa.ForeignKey("jobs.uid", ondelete="CASCADE"), primary_key=True),
        sa.Column("kind", sa.Text, primary_key=True),
        *_amounts("changed"),
        _json("document"),
    )
    op.create_table(
        "nodes", sa.Column("name", sa.Text, primary_key=True), _json("record"), _json("up")
    )
    op.create_table(
        "positions",
        sa.Column("node", sa.Text, primary_key=True),
        *_texts("stream"),
        sa.Column("seq", sa.Integer, nullable=False, server_default="0"),
        *_amounts("changed"),
    )
    op.create_table(
        "facts",
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("value", sa.Double, nullable=False),
    )


def downgrade() -> None:
    """Remove all tables."""
    for name in ("facts", "positions", "nodes", "findings", "pods", "jobs"):
        op.drop_table(name)
