"""`alnair check --watch` that keeps a record: `recorded_check.py RECORD check --watch ...`.

A violation that shows once in a hundred runs is explained from what the watch itself was told, and
when: `story` tells it of the nodes that are at fault.
"""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from alnair.checker.over_time import live_check
from alnair.cli.main import main


class Recorder(live_check.Watching):
    """A Watching that writes down each change of a bound pod before it judges it."""

    path = Path()

    def pods(
        self,
        listed: Sequence[live_check.Manifest] | None,
        changes: Sequence[live_check.Change],
        now: float,
        earliest: float | None = None,
    ) -> None:
        """Take a list of all pods, or changes, and keep what was taken."""
        told = changes if listed is None else [("LISTED", manifest) for manifest in listed]
        began = now if earliest is None else earliest
        times = {"seen": now, "after": began, "request": self.requests.longest(began, now)}
        with self.path.open("a") as record:
            for kind, manifest in told:
                if node := manifest["spec"].get("nodeName"):
                    record.write(json.dumps(times | _of(kind, node, manifest)) + "\n")
        super().pods(listed, changes, now, earliest)


def _of(kind: str, node: str, manifest: Mapping[str, Any]) -> dict[str, object]:
    metadata = manifest["metadata"]
    return {
        "node": node,
        "version": metadata["resourceVersion"],
        "kind": kind,
        "pod": metadata["name"],
        "scheduler": manifest["spec"]["schedulerName"],
        "deleting": bool(metadata.get("deletionTimestamp")),
    }


def story(record: Path, violations: Iterable[Mapping[str, object]]) -> str:
    """Return what happened on the nodes that are at fault, in the order in which it was seen."""
    nodes = {violation["node"] for violation in violations}
    lines = record.read_text().splitlines() if nodes else []
    return "\n".join(line for line in lines if json.loads(line)["node"] in nodes)


if __name__ == "__main__":
    Recorder.path = Path(sys.argv.pop(1))
    live_check.Watching = Recorder  # type: ignore[misc]
    main()
