"""`alnair agent`."""

from alnair.cli.agent.process import app

__all__ = ["app"]
