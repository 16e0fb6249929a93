"""`alnair scheduler`."""

from alnair.cli.scheduler.process import app

__all__ = ["app"]
