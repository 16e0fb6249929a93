"""Whose a pod is: its run and its series, for the controllers that people use."""

import pytest

from alnair.model.owners import MOST_STEPS, Owner, OwnerRef, above, reference, run_of, series_of

JOB = "batch/v1/Job"


def chain(*whats: str, generated: str = "") -> list[Owner]:
    """From `group/version/Kind:name`, from below; the topmost was generated from a name."""
    refs = []
    for what in ("v1/Pod:p", *whats):
        api, _, name = what.partition(":")
        version, _, kind = api.rpartition("/")
        group, _, number = version.rpartition("/")
        refs.append(OwnerRef(group, number, kind, "ns", name, f"uid-{kind}-{name}"))
    tops = [*refs[1:], None]
    last = len(refs) - 1
    return [
        Owner(ref=ref, controller=top, generate_name=generated if number == last else "")
        for number, (ref, top) in enumerate(zip(refs, tops, strict=True))
    ]


@pytest.mark.parametrize(
    ("owners", "run", "series"),
    [
        ([], "Pod/p", "Pod/p"),
        (["apps/v1/ReplicaSet:web-7c9d", "apps/v1/Deployment:web"], "Deployment/web",
         "Deployment/web"),
        (["apps/v1/StatefulSet:db"], "StatefulSet/db", "StatefulSet/db"),
        ([f"{JOB}:train-17"], "Job/train-17", "Job/train-#"),
        ([f"{JOB}:nightly-29312", "batch/v1/CronJob:nightly"], "Job/nightly-29312",
         "CronJob/nightly"),
        ([f"{JOB}:llm-node-0", "jobset.x-k8s.io/v1alpha2/JobSet:llm",
          "trainer.kubeflow.org/v1alpha1/TrainJob:llm"], "TrainJob/llm", "TrainJob/llm"),
        (["kubeflow.org/v1/PyTorchJob:bert"], "PyTorchJob/bert", "PyTorchJob/bert"),
        (["kubeflow.org/v2beta1/MPIJob:hpl"], "MPIJob/hpl", "MPIJob/hpl"),
        (["apps/v1/StatefulSet:lws-0", "v1/Pod:lws-0", "apps/v1/StatefulSet:lws",
          "leaderworkerset.x-k8s.io/v1/LeaderWorkerSet:lws"], "LeaderWorkerSet/lws",
         "LeaderWorkerSet/lws"),
        (["ray.io/v1/RayCluster:tune-raycluster-x4k2z", "ray.io/v1/RayJob:tune"], "RayJob/tune",
         "RayJob/tune"),
        (["batch.volcano.sh/v1alpha1/Job:vc"], "Job/vc", "Job/vc"),
        (["scheduling.x-k8s.io/v1alpha1/PodGroup:gang"], "PodGroup/gang", "PodGroup/gang"),
    ],
)  # fmt: skip
def test_the_run_is_the_topmost_that_does_not_recur_and_the_series_what_its_runs_share(
    owners: list[str], run: str, series: str
) -> None:
    found = chain(*owners)
    top = run_of(found).ref
    assert f"{top.kind}/{top.name}" == run
    assert series_of(found) == series


@pytest.mark.parametrize(
    ("name", "generated", "series"),
    [
        ("train-x4k2z", "train-", "Job/train-"),
        ("train-x4k2z", "", "Job/train-#"),
        ("train-2026-11-23", "", "Job/train-#-#-#"),
        ("train", "", "Job/train"),
    ],
)
def test_runs_of_one_template_share_a_series_whatever_their_numbers(
    name: str, generated: str, series: str
) -> None:
    assert series_of(chain(f"{JOB}:{name}", generated=generated)) == series


def test_a_static_pod_has_no_owner() -> None:
    assert reference("v1", "Node", "", "node-0", "u") is None
    assert reference("v1", "Pod", "ns", "leader", "u") is not None


def test_the_walk_ends_in_a_circle_and_after_five_steps() -> None:
    one, two = chain(f"{JOB}:a", f"{JOB}:b")[1:]
    circle = [one, Owner(ref=two.ref, controller=one.ref)]
    assert above(circle) is None
    assert above([one]) == two.ref
    long = chain(*(f"{JOB}:{number}" for number in range(9)))
    assert above(long[:MOST_STEPS]) is not None
    assert above(long[: MOST_STEPS + 1]) is None


def test_jobs_of_kubernetes_and_of_volcano_are_not_taken_for_one_another() -> None:
    refs = [reference(api, "Job", "ns", "x", "u") for api in ("batch/v1", "batch.volcano.sh/v1")]
    assert [one.group for one in refs if one] == ["batch", "batch.volcano.sh"]
    assert [one.api_version for one in refs if one] == ["batch/v1", "batch.volcano.sh/v1"]
