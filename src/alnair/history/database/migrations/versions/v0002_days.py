"""GPU hours of each day; what else of a cluster was kept in records only."""

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_AMOUNTS = ("gpu_seconds", "measured_gpu_seconds", "used_gpu_seconds")
#: The day of a job's end: SQLite cuts off what is behind the point, PostgreSQL rounds.
_DAY = {
    "sqlite": "CAST(completed / 86400.0 AS INTEGER)",
    "postgresql": "CAST(floor(completed / 86400.0) AS INTEGER)",
}


def upgrade() -> None:
    """Make the table of days from the jobs that are there."""
    op.create_table(
        "days",
        sa.Column("day", sa.Integer, primary_key=True),
        sa.Column("dimension", sa.Text, primary_key=True),
        sa.Column("name", sa.Text, primary_key=True),
        sa.Column("jobs", sa.Integer, nullable=False, server_default="0"),
        *(sa.Column(name, sa.Double, nullable=False, server_default="0") for name in _AMOUNTS),
    )
    day = _DAY[op.get_bind().dialect.name]
    totals = ", ".join(f"sum({name})" for name in _AMOUNTS)
    for dimension in ("namespace", "user"):
        op.execute(
            f"INSERT INTO days (day, dimension, name, jobs, {', '.join(_AMOUNTS)})"
            f" SELECT {day}, '{dimension}', \"{dimension}\", count(*), {totals} FROM jobs"
            f' WHERE completed IS NOT NULL AND gpus > 0 GROUP BY {day}, "{dimension}"'
        )
    op.drop_index("jobs_by_end", "jobs")
    op.create_index("jobs_by_end", "jobs", ["completed", "namespace", "user", "gpus", *_AMOUNTS])
    op.create_index("jobs_by_kind", "jobs", ["kind", "submitted"])
    # A name alone is asked for, too.
    op.drop_index("jobs_by_name", "jobs")
    op.create_index("jobs_by_name", "jobs", ["name", "namespace", "kind"])
    op.add_column("jobs", sa.Column("least", sa.Integer, nullable=False, server_default="0"))
    op.add_column("facts", sa.Column("text", sa.Text, nullable=False, server_default=""))
    op.create_table(
        "decisions",
        sa.Column("minute", sa.Integer, primary_key=True),
        sa.Column("count", sa.Integer, nullable=False, server_default="0"),
        sa.Column("seconds", sa.Double, nullable=False, server_default="0"),
    )


def downgrade() -> None:
    """Remove it."""
    op.drop_table("decisions")
    op.drop_column("facts", "text")
    op.drop_column("jobs", "least")
    op.drop_index("jobs_by_name", "jobs")
    op.create_index("jobs_by_name", "jobs", ["namespace", "name", "kind"])
    op.drop_index("jobs_by_kind", "jobs")
    op.drop_index("jobs_by_end", "jobs")
    op.create_index("jobs_by_end", "jobs", ["completed"])
    op.drop_table("days")
