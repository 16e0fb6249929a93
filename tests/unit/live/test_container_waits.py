"""Why containers of a pod that has a node do not run."""

from typing import Any

import msgspec
import pytest

from alnair.live.container_waits import PodWithContainers, waits

RUNS: dict[str, Any] = {"running": {"startedAt": "2026-11-29T10:00:00Z"}}
CRASHES = {
    "state": {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s restarting"}},
    "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
}


def told(*containers: dict[str, Any], first: tuple[dict[str, Any], ...] = ()) -> str:
    status = {"containerStatuses": containers, "initContainerStatuses": first}
    pod = {"metadata": {"name": "p"}, "spec": {"containers": []}, "status": status}
    return waits(msgspec.convert(pod, PodWithContainers))


def test_nothing_is_told_of_containers_that_run_or_have_ended() -> None:
    assert told() == ""
    assert told({"name": "a", "state": RUNS}, {"name": "b", "state": {"terminated": {}}}) == ""


def test_a_container_that_ends_again_and_again_is_told_with_its_exit() -> None:
    assert told({"name": "a", "state": RUNS}, {"name": "b", **CRASHES}) == (
        "its container b does not run: CrashLoopBackOff: back-off 10s restarting;"
        " it ended with 137 (OOMKilled)"
    )


@pytest.mark.parametrize("reason", ["ContainerCreating", "PodInitializing", None])
def test_containers_that_are_being_started_are_told_as_such(reason: str | None) -> None:
    starting = {"name": "a", "state": {"waiting": {"reason": reason}}}
    assert told(starting) == (
        "its containers are being started: images are pulled, or volumes mounted"
    )
    missing = {"name": "i", "state": {"waiting": {"reason": "ErrImagePull"}}}
    assert told(starting, first=(missing,)) == "its container i does not run: ErrImagePull"
