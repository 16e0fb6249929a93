"""The conformance cases pass, judged as `tests/conformance/run.py` judges them."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from conformance.document import Case, Document, read
from conformance.judge import judge
from conformance.outcome import Outcome

FOLDER = Path(__file__).parents[1] / "conformance"
FILES = list(read(FOLDER / "cases"))


@pytest.mark.parametrize(
    ("document", "case"),
    [pytest.param(document, case, id=case.id) for _, document in FILES for case in document.cases],
)
def test_kube_schedulers_cases_are_decided_alike(document: Document, case: Case) -> None:
    verdict = judge(document, case)
    if verdict.outcome is not Outcome.PASSED and verdict.outcome is not Outcome.FAILED:
        pytest.skip(f"counted apart, {verdict.why}")
    if verdict.why.startswith("not covered: "):
        pytest.skip(verdict.why)
    assert verdict.outcome is Outcome.PASSED, verdict.why


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(FOLDER / "run.py"), *arguments],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_a_folder_that_does_not_exist_is_named(tmp_path: Path) -> None:
    done = run(str(tmp_path / "nowhere"))
    assert done.returncode == 2
    assert "nowhere: no such folder" in done.stderr


def test_a_broken_file_is_named_with_what_to_do(tmp_path: Path) -> None:
    (tmp_path / "odd_filter.json").write_text('{"plugin": "NodeName"')
    done = run(str(tmp_path))
    assert done.returncode == 2
    assert "odd_filter.json" in done.stderr
    assert "mend the file or take it out" in done.stderr


def test_what_is_not_known_fails_and_what_breaks_fails(tmp_path: Path) -> None:
    """Cases never seen before: a plugin and a kind that do not exist, and a pod that is no pod."""
    node, pod = {"metadata": {"name": "n"}}, {"metadata": {"name": "p"}, "spec": {"nodeName": "n"}}
    good = {
        "id": "good",
        "pod": pod,
        "nodes": [node],
        "want": {"filter": {"n": {"code": "Success"}}},
    }
    wrong = {**good, "id": "wrong", "want": {"filter": {"n": {"code": "Unschedulable"}}}}
    broken = {**good, "id": "broken", "pod": {"metadata": {"name": "p"}, "spec": 3}}
    gated = {**good, "id": "gated", "default_gates": False, "features": {"NeverHeardOf": True}}
    for name, plugin, kind in (
        ("a_filter.json", "NodeName", "filter"),
        ("b_filter.json", "NoSuchPlugin", "filter"),
        ("c_dance.json", "NodeName", "dance"),
    ):
        cases = [{**c, "id": name[0] + c["id"]} for c in (good, wrong, broken, gated)]
        document = {"plugin": plugin, "kind": kind, "cases": cases}
        (tmp_path / name).write_text(json.dumps(document))
    done = run(str(tmp_path), "--json")
    assert done.returncode == 1
    found = json.loads(done.stdout)
    assert (found["cases"], found["passed"]) == (9, 1)
    assert found["by_file"] == {
        "a_filter.json": [1, 3],
        "b_filter.json": [0, 3],
        "c_dance.json": [0, 3],
    }
    assert found["failed"]["bgood"] == "not covered: plugin NoSuchPlugin"
    assert found["failed"]["cgood"] == "not covered: kind dance"
    assert "Unschedulable" in found["failed"]["awrong"]
    assert "ValidationError" in found["failed"]["abroken"]
    assert set(found["apart"]["gated"]) == {"agated", "bgated", "cgated"}
    assert run(str(tmp_path), "--min-rate", "10").returncode == 0
