"""What counts as refused to a component, by an API server's audit log."""

import json
from pathlib import Path

from kit.live.audited_requests import requests

_CONTROLLER = "system:serviceaccount:alnair-system:alnair-controller"


def _line(second: int, user: str, verb: str, resource: str, decision: str) -> str:
    group, _, name = resource.partition("/")
    about = {"apiGroup": group, "resource": name, "namespace": "ml", "name": "alnair-controller"}
    event = {
        "kind": "Event",
        "apiVersion": "audit.k8s.io/v1",
        "requestReceivedTimestamp": f"2026-11-23T14:{second // 60:02}:{second % 60:02}.000000Z",
        "user": {"username": user},
        "verb": verb,
        "objectRef": about,
        "annotations": {"authorization.k8s.io/decision": decision},
    }
    return json.dumps(event, separators=(",", ":")) + "\n"


def _allowed(folder: Path, *lines: str) -> list[bool]:
    (folder / "lc.log").write_text("".join(lines))
    return [allowed for _, _, allowed in requests(folder)]


def test_a_refusal_counts(tmp_path: Path) -> None:
    refused = _line(0, _CONTROLLER, "patch", "apps/replicasets", "forbid")
    assert _allowed(tmp_path, refused) == [False]


def test_what_is_refused_while_rights_are_taken_away_does_not_count(tmp_path: Path) -> None:
    taken = _line(0, "admin", "delete", "rbac.authorization.k8s.io/clusterrolebindings", "allow")
    soon = _line(30, _CONTROLLER, "patch", "apps/replicasets", "forbid")
    later = _line(90, _CONTROLLER, "patch", "apps/replicasets", "forbid")
    assert _allowed(tmp_path, taken, soon, later) == [False]
    assert _allowed(tmp_path, taken, soon) == []


def test_a_line_that_a_kill_has_cut_is_passed_over(tmp_path: Path) -> None:
    whole = _line(0, _CONTROLLER, "get", "apps/replicasets", "allow")
    assert _allowed(tmp_path, whole, whole[:50]) == [True]
    assert _allowed(tmp_path, whole, whole[:50], whole) == [True, True], (
        "the next one goes on there"
    )
