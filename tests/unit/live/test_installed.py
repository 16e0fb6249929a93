"""Alnair as pods, seen from outside."""

from typing import Any

from alnair.live.installed import InstalledComponent, components


def labels(component: str) -> dict[str, str]:
    return {
        "app.kubernetes.io/name": "alnair",
        "app.kubernetes.io/component": component,
    }


def workload(
    component: str, status: dict[str, int], image: str = "r/alnair:2", **spec: Any
) -> dict[str, Any]:
    template = {"spec": {"containers": [{"name": component, "image": image}]}}
    return {
        "metadata": {"name": f"alnair-{component}", "labels": labels(component)},
        "spec": {"template": template, **spec},
        "status": status,
    }


def pod(component: str, name: str, image: str = "r/alnair:2", **status: Any) -> dict[str, Any]:
    return {
        "metadata": {"name": name, "labels": labels(component)},
        "spec": {"containers": [{"name": component, "image": image}]},
        "status": {"containerStatuses": [{"restartCount": 1}], **status},
    }


def lease(component: str, holder: str) -> dict[str, Any]:
    return {"metadata": {"name": f"alnair-{component}"}, "spec": {"holderIdentity": holder}}


def test_a_healthy_component_names_its_version_and_its_leader() -> None:
    deployment = workload("scheduler", {"readyReplicas": 2}, replicas=2)
    pods = [pod("scheduler", "a"), pod("scheduler", "b"), pod("controller", "c")]
    assert components([deployment], pods, [lease("scheduler", "b")]) == [
        InstalledComponent("alnair-scheduler", 2, 2, ["2"], "b", 2, "")
    ]


def test_an_upgrade_under_way_shows_both_versions_the_coming_one_first() -> None:
    agents = workload(
        "agent", {"numberReady": 1, "desiredNumberScheduled": 2}, "r/alnair-agent@sha256:f"
    )
    old = pod("agent", "n1", "r:5000/alnair-agent:1")
    found = components([agents], [old, pod("agent", "n2", "r/alnair-agent@sha256:f")], [])
    assert found[0].versions == ["sha256:f", "1"]
    assert found[0].problem == "1 of 2 ready"


def test_what_keeps_pods_from_getting_ready_is_told_in_their_words() -> None:
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": "back-off 10s"}}
    crashing = pod("scheduler", "a", containerStatuses=[{"restartCount": 7, "state": waiting}])
    deployment = workload("scheduler", {}, replicas=1)
    (found,) = components([deployment], [crashing], [lease("scheduler", "")])
    assert found.problem == "0 of 1 ready: a: CrashLoopBackOff back-off 10s"
    assert found.restarts == 7

    refused = {"type": "PodScheduled", "status": "False", "message": "0/1 nodes are available"}
    lonely = pod("scheduler", "a", conditions=[refused], containerStatuses=[])
    (found,) = components([deployment], [lonely], [])
    assert found.problem == "0 of 1 ready: a: 0/1 nodes are available"


def test_pods_that_end_or_have_ended_count_for_nothing_but_may_lead_till_they_are_gone() -> None:
    deployment = workload("scheduler", {"readyReplicas": 1}, replicas=1)
    going = pod("scheduler", "going", containerStatuses=[{"restartCount": 3}])
    going["metadata"]["deletionTimestamp"] = "2026-11-23T17:00:00Z"
    evicted = pod("scheduler", "evicted", "r/alnair:1", phase="Failed", containerStatuses=[])
    pods = [pod("scheduler", "a"), going, evicted]
    assert components([deployment], pods, [lease("scheduler", "going")]) == [
        InstalledComponent("alnair-scheduler", 1, 1, ["2"], "going", 1, "")
    ]


def test_what_an_ending_pod_waits_for_is_no_reason() -> None:
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": ""}}
    going = pod("scheduler", "a", containerStatuses=[{"restartCount": 7, "state": waiting}])
    going["metadata"]["deletionTimestamp"] = "2026-11-23T17:00:00Z"
    (found,) = components([workload("scheduler", {}, replicas=1)], [going], [])
    assert (found.problem, found.restarts) == ("0 of 1 ready", 0)


def test_one_of_its_pods_must_lead() -> None:
    deployment = workload("controller", {"readyReplicas": 1}, replicas=1)
    pods = [pod("controller", "a")]
    (found,) = components([deployment], pods, [lease("controller", "")])
    assert found.problem == "none leads"
    (found,) = components([deployment], pods, [lease("controller", "laptop_1")])
    assert found.problem == "laptop_1 leads, which is no pod of it"


def test_no_node_with_the_agents_label_is_no_problem() -> None:
    agents = workload("agent", {"desiredNumberScheduled": 0}, "r/alnair-agent:2")
    assert components([agents], [], []) == [
        InstalledComponent("alnair-agent", 0, 0, ["2"], "", 0, "")
    ]
