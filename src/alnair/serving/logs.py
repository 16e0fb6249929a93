"""How the process logs: lines for people, or one JSON object per line for machines."""

import json
import logging
from datetime import UTC, datetime
from typing import Literal


class JsonFormatter(logging.Formatter):
    """One object per record: ts (RFC 3339, UTC), level, logger, msg, and the error if there is."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line = {
            "ts": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname.lower(),
            "logger": record.name,
            "msg": record.getMessage(),
        }
        if record.exc_info:
            line["error"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


def set_up(kind: Literal["text", "json"], level: str) -> None:
    """Log to stderr from now on."""
    handler = logging.StreamHandler()
    if kind == "json":
        handler.setFormatter(JsonFormatter())
    else:
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
