"""Makes Grafana's dashboards, as JSON, of `dashboards.yaml` beside this file."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

#: What a reader has chosen.
_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_FILE = Path(__file__).with_suffix(".yaml")
#: Panels, in a row of 24 columns.
_WIDTH = 8
_HEIGHT = 8


def dashboards() -> dict[str, str]:
    """Name of the file -> what Grafana reads."""
    found = yaml.safe_load_all(_FILE.read_text())
    return {f"{one['uid']}.json": json.dumps(_dashboard(one), indent=1) + "\n" for one in found}


def _dashboard(asked: dict[str, Any]) -> dict[str, Any]:
    return {
        "uid": asked["uid"],
        "title": asked["title"],
        "description": asked["description"],
        "tags": ["alnair"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "30s",
        "time": {"from": "now-3h", "to": "now"},
        "templating": {"list": [*_variables(asked.get("variables", {}))]},
        "panels": [_panel(number, one) for number, one in enumerate(asked["panels"])],
    }


def _variables(asked: dict[str, str]) -> Iterator[dict[str, Any]]:
    yield {
        "name": "datasource",
        "label": "Prometheus",
        "type": "datasource",
        "query": "prometheus",
    }
    for name, query in asked.items():
        yield {
            "name": name,
            "type": "query",
            "datasource": _SOURCE,
            "query": {"query": query, "refId": name},
            "refresh": 2,
            "multi": True,
            "includeAll": True,
            "allValue": ".*",
            "current": {"text": ["All"], "value": ["$__all"]},
        }


def _panel(number: int, panel: dict[str, Any]) -> dict[str, Any]:
    row, column = divmod(number, 24 // _WIDTH)
    return {
        "id": number + 1,
        "title": panel["title"],
        "description": panel.get("description", ""),
        "type": panel.get("kind", "timeseries"),
        "datasource": _SOURCE,
        "gridPos": {"x": column * _WIDTH, "y": row * _HEIGHT, "w": _WIDTH, "h": _HEIGHT},
        "fieldConfig": {"defaults": {"unit": panel["unit"], "min": 0}, "overrides": []},
        "targets": [
            {
                "refId": chr(ord("A") + at),
                "expr": expr,
                "legendFormat": legend,
                "datasource": _SOURCE,
            }
            for at, (legend, expr) in enumerate(panel["queries"].items())
        ],
    }
