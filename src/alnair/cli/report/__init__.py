"""`alnair report`."""

from alnair.cli.report.scheduling import app

__all__ = ["app"]
