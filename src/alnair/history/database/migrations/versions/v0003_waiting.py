"""When a pod got its node, and why it had waited for one."""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

#: Both are in the records that are there, as far as they are known.
_TOLD = {
    "sqlite": ("json_extract(record, '$.bound')", "json_extract(record, '$.refused')"),
    "postgresql": ("CAST(record->>'bound' AS double precision)", "record->>'refused'"),
}


def upgrade() -> None:
    """Add them, of the pods that are there too."""
    op.add_column("pods", sa.Column("bound", sa.Double))
    op.add_column("pods", sa.Column("waited", sa.Text, nullable=False, server_default=""))
    bound, waited = _TOLD[op.get_bind().dialect.name]
    op.execute(f"UPDATE pods SET bound = {bound}, waited = coalesce({waited}, '')")


def downgrade() -> None:
    """Remove them."""
    op.drop_column("pods", "waited")
    op.drop_column("pods", "bound")
