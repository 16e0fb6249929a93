"""What each component asked a real API server for, by the server's own audit log."""

import json
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from alnair.doctor.cluster.chart_rights import Right
from alnair.model.names import NAMESPACE

_ACCOUNTS: Final = f"system:serviceaccount:{NAMESPACE}:"
_RIGHTS: Final = "rbac.authorization.k8s.io"
#: For how long a component may go on after its rights were deleted: pods end in that time.
_ENDING_S: Final = 40.0
#: Our components, and who takes away their rights; the server writes a line for each request.
_POLICY: Final = {
    "apiVersion": "audit.k8s.io/v1",
    "kind": "Policy",
    "omitStages": ["RequestReceived"],
    "rules": [
        {
            "level": "Metadata",
            "users": [
                *("alnair-scheduler", "alnair-controller"),
                # The same as pods.
                *(f"{_ACCOUNTS}alnair-{name}" for name in ("scheduler", "controller", "agent")),
            ],
        },
        {"level": "Metadata", "userGroups": ["alnair-agents"]},
        {
            "level": "Metadata",
            "verbs": ["delete"],
            "resources": [{"group": _RIGHTS, "resources": ["clusterroles", "clusterrolebindings"]}],
        },
        {"level": "None"},
    ],
}
#: The user agent of tests that try what a component may not.
TRESPASSER: Final = "alnair-trespasser"
#: How each line begins; of what was asked it holds no objects, so this is nowhere else in it.
_BEGIN: Final = '{"kind":"Event","apiVersion":"audit.k8s.io/'
#: What everybody may ask who is known: about oneself.
_ABOUT_ONESELF: Final = "selfsubject"


def audit_flags(folder: Path, cluster: str) -> list[str]:
    """Flags that make an API server write an audit log of our components into a folder."""
    folder.mkdir(exist_ok=True)
    policy = folder / "policy.json"
    policy.write_text(json.dumps(_POLICY))
    return [f"--audit-policy-file={policy}", f"--audit-log-path={folder / cluster}.log"]


def requests(folder: Path) -> Iterator[tuple[str, Right, bool]]:
    """Each request of a component in all logs of a folder: whose, what for, whether allowed.

    What is refused to one that has just lost its rights, as at an uninstall, is left out.
    """
    for log in sorted(folder.glob("*.log")):
        lost = float("-inf")
        for event in events(log):
            at = datetime.fromisoformat(event["requestReceivedTimestamp"]).timestamp()
            if _deletes_rights(event):
                if str(event["objectRef"].get("name")).startswith("alnair"):
                    lost = at
                continue
            for component, right, is_allowed in _of(event):
                if is_allowed or at - lost > _ENDING_S:
                    yield component, right, is_allowed


def events(log: Path) -> Iterator[dict[str, Any]]:
    """Each whole event of one API server's log, which goes on where a killed one was cut off."""
    with log.open() as lines:
        for line in lines:
            # The last line of a server that was killed may be cut; the next one begins in it.
            begin = line.rfind(_BEGIN)
            if begin >= 0 and line.endswith("}\n"):
                yield json.loads(line[begin:])


def _deletes_rights(event: dict[str, Any]) -> bool:
    return event["verb"] == "delete" and (event.get("objectRef") or {}).get("apiGroup") == _RIGHTS


def _of(event: dict[str, Any]) -> Iterator[tuple[str, Right, bool]]:
    about = event.get("objectRef")
    if about is None or about["resource"].startswith(_ABOUT_ONESELF):
        return  # discovery and health, or what everybody may ask
    if event.get("userAgent") == TRESPASSER:
        return
    resource = "/".join((about["resource"], *filter(None, [about.get("subresource")])))
    resource = f"{resource}.{about['apiGroup']}" if about.get("apiGroup") else resource
    place = NAMESPACE if about.get("namespace") == NAMESPACE else ""
    component = _component(event["user"])
    allowed = event.get("annotations", {}).get("authorization.k8s.io/decision") == "allow"
    yield component, Right(event["verb"], resource, place), allowed
    if event["verb"] == "patch" and event.get("responseStatus", {}).get("code") == 201:
        # An apply that made the object needs both rights.
        yield component, Right("create", resource, place), allowed


def _component(user: dict[str, Any]) -> str:
    name = str(user["username"]).removeprefix(_ACCOUNTS)
    return name.partition(":")[0].removeprefix("alnair-")
