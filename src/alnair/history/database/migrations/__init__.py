"""Migrations of the history's tables, by alembic; each is a module of `versions`."""
