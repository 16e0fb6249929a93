"""What alembic runs to migrate; the connection and its lock are of `history.database.opening`."""

from alembic import context

from alnair.history.database.tables import METADATA

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=METADATA,
    render_as_batch=True,
)
context.run_migrations()
