"""Grafana's dashboards: every query is one that Prometheus takes, of metrics that there are."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[2]
FILES = sorted((ROOT / "charts" / "alnair" / "files" / "dashboards").glob("*.json"))
_METRIC = re.compile(r"\b(?:alnair|scheduler|leader)_\w+")


def _queries(file: Path) -> list[str]:
    dashboard = json.loads(file.read_text())
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    listed = [one["query"]["query"] for one in _variables(dashboard)]
    return [*asked, *(re.sub(r"label_values\((.*), \w+\)", r"\1", one) for one in listed)]


def _variables(dashboard: dict) -> list[dict]:  # type: ignore[type-arg]
    return [one for one in dashboard["templating"]["list"] if one["type"] == "query"]


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_dashboard_asks_for_metrics_that_there_are(file: Path) -> None:
    pages = (ROOT / "docs" / "reference").glob("metrics*.md")
    known = "".join(page.read_text() for page in pages)
    asked = {name for query in _queries(file) for name in _METRIC.findall(query)}
    assert asked
    parts = r"_(bucket|sum|count)$"
    missing = [name for name in asked if f"`{re.sub(parts, '', name)}`" not in known]
    assert missing == []


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_a_dashboard_chooses_by_variables_that_it_has(file: Path) -> None:
    dashboard = json.loads(file.read_text())
    used = set(re.findall(r"\$(\w+)", " ".join(_queries(file))))
    assert used == {one["name"] for one in _variables(dashboard)}


def test_prometheus_takes_every_query_of_the_dashboards(tmp_path: Path) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed (Debian, Ubuntu: apt-get install prometheus)")
    queries = [query for file in FILES for query in _queries(file)]
    rules = [
        {"record": f"dashboard:{number}", "expr": query} for number, query in enumerate(queries)
    ]
    file = tmp_path / "rules.yaml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "dashboards", "rules": rules}]}))
    command = [promtool, "check", "rules", "--lint=none", str(file)]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout + found.stderr
    assert f"{len(queries)} rules found" in found.stdout
