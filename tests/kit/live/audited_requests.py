"""What each component asked a real API server for, by the server's own audit log."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from alnair.doctor.cluster.chart_rights import Right
from alnair.model.names import NAMESPACE

_ACCOUNTS: Final = f"system:serviceaccount:{NAMESPACE}:"
#: Users and groups of our components, and nobody else; the server writes a line for each request.
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
                *(_ACCOUNTS + name for name in ("alnair-scheduler", "alnair-controller")),
            ],
        },
        {"level": "Metadata", "userGroups": ["alnair-agents"]},
        {"level": "None"},
    ],
}
#: The user agent of tests that try what a component may not.
TRESPASSER: Final = "alnair-trespasser"
#: What everybody may ask who is known: about oneself.
_ABOUT_ONESELF: Final = "authorization.k8s.io"


def audit_flags(folder: Path, cluster: str) -> list[str]:
    """Flags that make an API server write an audit log of our components into a folder."""
    folder.mkdir(exist_ok=True)
    policy = folder / "policy.json"
    policy.write_text(json.dumps(_POLICY))
    return [f"--audit-policy-file={policy}", f"--audit-log-path={folder / cluster}.log"]


def requests(folder: Path) -> Iterator[tuple[str, Right, bool]]:
    """Each request of a component in all logs of a folder: whose, what for, whether allowed."""
    for log in sorted(folder.glob("*.log")):
        with log.open() as lines:
            for line in lines:
                # The last line of a server that was killed may be cut.
                if line.endswith("}\n"):
                    yield from _of(json.loads(line))


def _of(event: dict[str, Any]) -> Iterator[tuple[str, Right, bool]]:
    about = event.get("objectRef")
    if about is None or about.get("apiGroup") == _ABOUT_ONESELF:
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
