"""The history of jobs in a database: SQLite for one controller, PostgreSQL for several.

Statements and rows, with SQLAlchemy Core; times come in as arguments, seconds since the epoch. What
is written in one call is one transaction, and may be written again without a difference: so whoever
was killed in between starts anew from what it last knew.
"""
