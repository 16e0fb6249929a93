"""What a pod requests, as Kubernetes sums it up."""

from collections.abc import Callable, Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alnair.model.pod_requests import ContainerRequests, ends_first, most_at_once, pod_requests


def init(**requests: int) -> ContainerRequests:
    return ContainerRequests(requests, init=True)


def sidecar(**requests: int) -> ContainerRequests:
    return ContainerRequests(requests, init=True, sidecar=True)


def main(**requests: int) -> ContainerRequests:
    return ContainerRequests(requests)


@pytest.mark.parametrize(
    ("why", "containers", "want"),
    [
        ("no container, no request", [], {}),
        ("containers add up", [main(cpu=100), main(cpu=200)], {"cpu": 300}),
        (
            "the largest init container counts",
            [init(cpu=500), init(cpu=700), main(cpu=300)],
            {"cpu": 700},
        ),
        ("the containers count if they are more", [init(cpu=200), main(cpu=300)], {"cpu": 300}),
        (
            "each resource has its own peak",
            [init(cpu=9, memory=1), main(cpu=1, memory=9)],
            {"cpu": 9, "memory": 9},
        ),
        ("a sidecar runs beside the containers", [sidecar(cpu=100), main(cpu=300)], {"cpu": 400}),
        (
            "a sidecar runs beside later init containers",
            [sidecar(cpu=100), init(cpu=700), main(cpu=300)],
            {"cpu": 800},
        ),
        (
            "a sidecar is not there yet for earlier ones",
            [init(cpu=700), sidecar(cpu=100), main(cpu=300)],
            {"cpu": 700},
        ),
        (
            "sidecars add up in their order",
            [sidecar(cpu=1), init(cpu=10), sidecar(cpu=2), init(cpu=10), main(cpu=3)],
            {"cpu": 13},
        ),
    ],
)
def test_the_largest_moment_counts(
    why: str, containers: list[ContainerRequests], want: Mapping[str, int]
) -> None:
    assert pod_requests(containers) == want, why


def test_pod_level_resources_replace_the_sum_of_those_they_may_name() -> None:
    total = pod_requests(
        [main(cpu=100, memory=5, gpu=1)],
        pod_level={"cpu": 900, "hugepages-2Mi": 7, "gpu": 4},
    )
    assert total == {"cpu": 900, "memory": 5, "hugepages-2Mi": 7, "gpu": 1}


def test_overhead_comes_on_top_of_everything() -> None:
    total = pod_requests([main(cpu=100)], pod_level={"cpu": 900}, overhead={"cpu": 10, "memory": 3})
    assert total == {"cpu": 910, "memory": 3}


def test_defaults_stand_in_for_silent_containers_only() -> None:
    total = pod_requests(
        [init(), main(cpu=0), main(memory=7)], defaults={"cpu": 100, "memory": 200}
    )
    assert total == {"cpu": 100, "memory": 207}


roles = st.sampled_from([init, sidecar, main])


@given(st.lists(st.tuples(roles, st.integers(0, 50)), max_size=8))
def test_the_request_is_what_runs_at_once_at_the_worst_moment(
    parts: list[tuple[Callable[..., ContainerRequests], int]],
) -> None:
    order = [p for p in parts if p[0] is not main] + [p for p in parts if p[0] is main]
    containers = [role(cpu=amount) for role, amount in order]
    moments = [sum(amount for role, amount in order if role is not init)]
    for place, (role, amount) in enumerate(order):
        if role is init:
            moments.append(amount + sum(a for r, a in order[:place] if r is sidecar))
    assert pod_requests(containers).get("cpu", 0) == max(moments)


def test_only_init_containers_that_are_no_sidecars_end_first() -> None:
    assert [ends_first(c) for c in (init(), sidecar(), main())] == [True, False, False]
    assert most_at_once([]) == 0
    assert most_at_once([(init(), 5), (sidecar(), 2), (init(), 4), (main(), 3)]) == 6
