"""Manifests as scenarios: what controllers make of them, with the live scheduler's eyes."""

import gzip
import math
from pathlib import Path

import msgspec
import pytest

from alnair.kube.objects.pod_projection import PodProjector
from alnair.kube.objects.wire import PodWire
from alnair.model import names
from alnair.sim.inputs import InputOptions, Loaded, load
from alnair.sim.jobs import Job
from alnair.traces.files import TraceFileError

ON_A_NODE = InputOptions(nodes="2x8xA100")
POD = """
apiVersion: v1
kind: Pod
metadata:
  name: one
spec:
  schedulerName: alnair-scheduler
  containers:
  - name: main
    image: pause
    resources:
      limits: {nvidia.com/gpu: 2}
      requests: {cpu: 0.5, memory: 1Gi}
"""
TEMPLATE = """
    metadata: {labels: {app: x}}
    spec:
      schedulerName: alnair-scheduler
      containers: [{name: main, image: pause, resources: {requests: {cpu: 1}}}]
"""


def controller(kind: str, spec: str = "", api: str = "apps/v1", metadata: str = "") -> str:
    return (
        f"apiVersion: {api}\nkind: {kind}\nmetadata: {{name: c{metadata}}}\nspec:\n{spec}"
        f"  template:{TEMPLATE}"
    )


def made(tmp_path: Path, *texts: str, options: InputOptions = ON_A_NODE) -> Loaded:
    paths = []
    for i, text in enumerate(texts):
        paths.append(tmp_path / f"{i}.yaml")
        paths[-1].write_text(text)
    return load(paths, options)


def jobs(tmp_path: Path, *texts: str, options: InputOptions = ON_A_NODE) -> tuple[Job, ...]:
    return made(tmp_path, *texts, options=options).scenario.jobs


def refusal(tmp_path: Path, *texts: str, options: InputOptions = ON_A_NODE) -> str:
    with pytest.raises(TraceFileError) as error:
        made(tmp_path, *texts, options=options)
    return str(error.value).replace(f"{tmp_path}/", "")


def test_a_pod_is_what_the_live_scheduler_reads(tmp_path: Path) -> None:
    (job,) = jobs(tmp_path, POD)
    live = msgspec.yaml.decode(POD.replace("0.5", "500m"), type=PodWire)
    live.metadata.namespace = "default"
    assert job.pods == (PodProjector()(live),)
    assert (job.name, job.user, job.submitted) == ("default/one", "default", 0.0)
    assert job.duration == math.inf


@pytest.mark.parametrize("suffix", ["yaml", "json", "yaml.gz"])
def test_files_may_be_yaml_or_json_and_compressed(tmp_path: Path, suffix: str) -> None:
    text = POD
    if suffix == "json":
        text = msgspec.json.encode(msgspec.yaml.decode(POD)).decode()
    data = text.encode()
    path = tmp_path / f"pod.{suffix}"
    path.write_bytes(gzip.compress(data, mtime=0) if suffix.endswith("gz") else data)
    for given in (path, tmp_path):
        (job,) = load([given], ON_A_NODE).scenario.jobs
        assert job.pods[0].spec.requests[0] == ("cpu", 500)


def test_lists_and_several_documents_are_read(tmp_path: Path) -> None:
    inner = "".join(f"  {line}\n" for line in POD.strip().splitlines())
    listed = "apiVersion: v1\nkind: List\nitems:\n-" + inner[1:]
    found = jobs(tmp_path, f"---\n{POD}\n---\n\n---\n{listed.replace('name: one', 'name: two')}")
    assert [job.name for job in found] == ["default/one", "default/two"]


@pytest.mark.parametrize(
    ("kind", "owner"),
    [
        ("Deployment", ("ReplicaSet", "c-simulated")),
        ("ReplicaSet", ("ReplicaSet", "c")),
        ("StatefulSet", ("StatefulSet", "c")),
    ],
)
def test_controllers_have_as_many_pods_as_replicas(
    tmp_path: Path, kind: str, owner: tuple[str, str]
) -> None:
    (job,) = jobs(tmp_path, controller(kind, "  replicas: 3\n"))
    assert job.name == f"default/{kind}/c"
    assert [pod.name for pod in job.pods] == [f"{owner[1]}-{i}" for i in range(3)]
    assert {pod.controller for pod in job.pods} == {owner}
    assert {pod.spec for pod in job.pods} == {job.pods[0].spec}
    assert all(pod.owned for pod in job.pods)
    assert len(jobs(tmp_path, controller(kind))[0].pods) == 1


def test_a_daemon_set_has_a_pod_for_each_node_that_it_may_use(tmp_path: Path) -> None:
    (job,) = jobs(tmp_path, controller("DaemonSet"))
    assert [pod.name for pod in job.pods] == ["c-a100x8-0000", "c-a100x8-0001"]
    assert all(pod.daemon for pod in job.pods)
    text = controller("DaemonSet").replace(
        "schedulerName", "nodeSelector: {kubernetes.io/hostname: a100x8-0001}\n      schedulerName"
    )
    assert [pod.name for pod in jobs(tmp_path, text)[0].pods] == ["c-a100x8-0001"]


@pytest.mark.parametrize(
    ("spec", "pods", "duration"),
    [
        ("", 1, 100),
        ("  parallelism: 3\n", 3, 100),
        ("  parallelism: 3\n  completions: 3\n", 3, 100),
        ("  parallelism: 3\n  completions: 7\n", 3, 300),
        ("  parallelism: 9\n  completions: 2\n", 2, 100),
        ("  completions: 4\n", 1, 400),
        ("  parallelism: 3\n  completions: 7\n  activeDeadlineSeconds: 250\n", 3, 250),
    ],
)
def test_a_job_runs_its_completions_as_many_at_once_as_it_says(
    tmp_path: Path, spec: str, pods: int, duration: float
) -> None:
    note = f', annotations: {{{names.EXPECTED}: \'{{"v":1,"t":"","duration_s":100}}\'}}'
    (job,) = jobs(tmp_path, controller("Job", spec, "batch/v1", note))
    assert (len(job.pods), job.duration) == (pods, duration)
    assert ("job-name", "c") in job.pods[0].labels


@pytest.mark.parametrize("api", ["scheduling.x-k8s.io/v1alpha1", "scheduling.sigs.k8s.io/v1alpha1"])
def test_pods_of_a_group_are_one_job(tmp_path: Path, api: str) -> None:
    group = f"apiVersion: {api}\nkind: PodGroup\nmetadata: {{name: g}}\nspec: {{minMember: 3}}\n"
    label = f"{names.POD_GROUP_LABEL}: g"
    work = controller("Job", "  parallelism: 2\n", "batch/v1").replace("app: x", label)
    pod = POD.replace("name: one", f"name: one\n  labels: {{{label}}}")
    found = made(tmp_path, work, pod, group)
    (job,) = found.scenario.jobs
    assert job.gang is not None
    assert (job.gang.min_member, job.gang.api, len(job.pods)) == (3, api, 3)
    assert job.name == "default/PodGroup/g"
    odd = made(tmp_path, pod.replace(": g", ": 'g{x}'"), group.replace(": g", ": 'g{x}'"))
    assert any("will wait for ever" in note for note in odd.notes)


def test_priorities_are_those_of_their_classes(tmp_path: Path) -> None:
    high = (
        "apiVersion: scheduling.k8s.io/v1\nkind: PriorityClass\nmetadata: {name: high}\nvalue: 7\n"
        "preemptionPolicy: Never\n"
    )
    usual = high.replace("high", "usual").replace("value: 7", "value: 5\nglobalDefault: true")
    pod = POD.replace("schedulerName", "priorityClassName: high\n  schedulerName")
    named, silent = jobs(tmp_path, pod, POD.replace("one", "two"), f"{high}---\n{usual}")
    assert (named.pods[0].priority, named.pods[0].preempts) == (7, False)
    assert silent.pods[0].priority == 5
    assert "no PriorityClass 'high'" in refusal(tmp_path, pod, POD.replace("one", "two"), usual)


def test_times_of_manifests_are_those_of_their_annotations(tmp_path: Path) -> None:
    expected = '{"v":1,"t":"","duration_s":90,"util":40}'
    note = f"name: one\n  annotations: {{{names.SUBMIT_AT}: '30', {names.EXPECTED}: '{expected}'}}"
    late = POD.replace("name: one", note)
    soon, then = jobs(
        tmp_path,
        late,
        POD.replace("one", "two"),
        options=InputOptions(nodes="1x8xA100", submit_at=20),
    )
    assert (soon.submitted, soon.duration) == (20.0, math.inf)
    assert (then.submitted, then.duration, then.util) == (30.0, 90.0, 40.0)
    assert then.pods[0].time_limit == 90
    assert then.pods[0].spec.expected_util == 40.0


def test_pods_that_run_go_on_and_what_they_need_comes_along(tmp_path: Path) -> None:
    node = (
        "apiVersion: v1\nkind: Node\nmetadata: {name: n}\n"
        "status: {allocatable: {cpu: 8, memory: 8Gi, pods: 9}}\n---\n"
    )
    running = (
        "apiVersion: v1\nkind: Pod\nmetadata: {name: r, uid: u}\n"
        "spec: {nodeName: n, schedulerName: alnair-scheduler, containers: [{name: c}]}\n"
        "status:\n  phase: Running\n  conditions:\n"
        "  - {type: PodScheduled, status: 'True', lastTransitionTime: 2026-01-01T00:00:00Z}\n---\n"
    )
    later = running.replace("name: r, uid: u", "name: s, uid: v").replace(":00Z", ":10Z")
    done = running.replace("name: r, uid: u", "name: t").replace("Running", "Succeeded")
    away = running.replace("name: r, uid: u", "name: w").replace("nodeName: n", "nodeName: m")
    quota = (
        "apiVersion: scheduling.x-k8s.io/v1alpha1\nkind: ElasticQuota\n"
        "metadata: {name: q, namespace: team}\nspec: {max: {cpu: 4}}\n---\n"
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n"
    )
    found = made(tmp_path, node + running + later + done + away + quota, options=InputOptions())
    scenario = found.scenario
    assert [node.name for node in scenario.nodes] == ["n"]
    assert [(job.pods[0].uid, job.pods[0].bound_at) for job in scenario.running] == [
        ("u", -10.0),
        ("v", 0.0),
    ]
    assert scenario.begin == 1767225610.0
    assert scenario.objects[0][:3] == ("ElasticQuota", "team", "q")
    assert sorted(found.notes) == [
        "1 pod has finished: it is left out",
        "1 pod runs on a node that is not there: it is left out",
        "objects that scheduling does not depend on are left out: ConfigMap (1)",
    ]


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("name: one", "labels: {}", "0.yaml, line 5: column 3, metadata: name is missing"),
        ("cpu: 0.5", "cpu: many", "spec: 'many' is not a quantity"),
        ("cpu: 0.5", "cpu: -1", "requests a negative amount of cpu"),
        ("cpu: 0.5", "cpu: .nan", "'.nan' is not a quantity"),
        ("- name: main", "- name: 5", "line 9: column 11, spec.containers[0].name: Expected"),
        ("  containers:", "  other:", "spec: containers is empty or missing"),
        (
            "spec:",
            "spec:\n  resourceClaims: [{name: gpu, resourceClaimTemplateName: one}]",
            "spec: spec.resourceClaims asks for devices by dynamic resource allocation",
        ),
        ("spec:", "specs:", "line 2: column 1, Object missing required field spec"),
        ("kind: Pod", "kind: 7", "apiVersion or kind is missing"),
        ("apiVersion: v1", "apiVersion: v2", "Pod is not known in v2: write v1"),
        ("name: one", "name: one\n  name: two", "line 6: column 3: this cannot be read as YAML"),
        ("name: one", "name: [one", "this cannot be read as YAML"),
        ("name: one", "name: !!python/name:os.system one", "this cannot be read as YAML"),
    ],
)
def test_what_is_wrong_with_a_manifest_is_told_with_its_place(
    tmp_path: Path, old: str, new: str, said: str
) -> None:
    assert said in refusal(tmp_path, POD.replace(old, new, 1))


def test_all_files_are_told_at_once_and_names_that_are_there_twice(tmp_path: Path) -> None:
    said = refusal(tmp_path, POD, POD, POD.replace("cpu: 0.5", "cpu: many").replace("one", "two"))
    assert "1.yaml, line 5: column 9, metadata.name: Pod 'one' is also at " in said
    assert "2.yaml" in said


@pytest.mark.parametrize("text", ["-1", "nan", "inf", "soon"])
def test_a_time_that_cannot_be_is_told(tmp_path: Path, text: str) -> None:
    note = f"name: one\n  annotations: {{{names.SUBMIT_AT}: '{text}'}}"
    assert "seconds from the begin on" in refusal(tmp_path, POD.replace("name: one", note))


def test_manifests_without_nodes_ask_for_them(tmp_path: Path) -> None:
    assert "there is no Node among them" in refusal(tmp_path, POD, options=InputOptions())


BOMB = "a: &a [1,1,1,1,1,1,1,1,1]\n" + "".join(
    f"{name}: &{name} [{','.join([f'*{before}'] * 9)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("kind: x\n" + BOMB, "unfolds to more than"),
        ("kind: &a\n  b: *a\n", "is inside of what it stands for"),
        ("kind: " + "[" * 200 + "]" * 200, "is nested deeper than 100 levels"),
        ("kind: " + "[" * 100_000, "is nested deeper than 100 levels"),
        ('{"kind": ' + "[" * 100_000, "cannot be read"),
        ('{"kind": "Pod",}', "line 1: column 16: this is no JSON"),
        ('{"kind": "Pod", "kind": "Job"}', "kind is there twice"),
        ('{"kind": ' + "9" * 5000 + "}", "cannot be read"),
        ("kind: 1\n--- 5\n", "a int is no object"),
        ("---\n", "there is no object in it"),
        ("kind: 2026-01-01\n", "apiVersion or kind is missing"),
    ],
)
def test_bombs_and_rubbish_are_refused(tmp_path: Path, text: str, said: str) -> None:
    assert said in refusal(tmp_path, text)


def test_too_many_replicas_are_refused(tmp_path: Path) -> None:
    said = refusal(tmp_path, controller("Deployment", "  replicas: 1000000000000\n"))
    assert "more than 200000 pods in all" in said
    assert "Expected `int` >= 0".replace("`", "") in refusal(
        tmp_path, controller("Deployment", "  replicas: -1\n")
    )


@pytest.mark.parametrize(
    ("resources", "said"),
    [
        ("limits: {nvidia.com/gpu: 0.5}", "limits: nvidia.com/gpu: '0.5' is no whole number"),
        ("limits: {nvidia.com/gpu: 1500m}", "limits: nvidia.com/gpu: '1500m' is no whole number"),
        ("requests: {nvidia.com/gpu: 1}", "requests: nvidia.com/gpu has no limit"),
        (
            "{limits: {alnair/vgpu-memory: 2048}, requests: {alnair/vgpu-memory: 1024}}",
            "requests: alnair/vgpu-memory differs from its limit",
        ),
    ],
)
def test_a_pod_that_the_api_server_refuses_has_no_answer(
    tmp_path: Path, resources: str, said: str
) -> None:
    head, _, _ = POD.partition("    resources:")
    assert said in refusal(tmp_path, f"{head}    resources:\n      {resources}\n")
    fits = "{limits: {nvidia.com/gpu: 1}, requests: {nvidia.com/gpu: 1, cpu: 500m}}"
    assert jobs(tmp_path, f"{head}    resources: {fits}\n")
