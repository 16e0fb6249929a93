"""What a simulation is made of: the one entry, the options, the shipped traces, what is refused."""

import gzip
import hashlib
import math
import re
from importlib import resources
from pathlib import Path

import msgspec
import pytest

from alnair.kube.objects import trace_pods
from alnair.kube.objects.node_projection import project_node
from alnair.kube.objects.pod_projection import PodProjector
from alnair.kube.objects.simulated_nodes import manifest as node_manifest
from alnair.kube.objects.wire import NodeWire, PodWire
from alnair.model import names
from alnair.sim.inputs import InputOptions, Loaded, Mix, load, utilisation
from alnair.traces import openb_files
from alnair.traces.arrivals import Arrival
from alnair.traces.files import TraceFileError

PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
    "creation_time,deletion_time,scheduled_time\n"
)
NODES = "sn,cpu_milli,memory_mib,gpu,model\nn0,96000,393216,8,G2\n"
JOBS = "timestamp,duration,num_gpus,gpu_time,cluster\n"
CLUSTER = "4x8xV100M32"
ON_CLUSTER = InputOptions(nodes=CLUSTER)
NONE = InputOptions()


def philly(tmp_path: Path, text: str, options: InputOptions = ON_CLUSTER) -> Loaded:
    path = tmp_path / "jobs.csv"
    path.write_text(text)
    return load([path], options)


def openb(tmp_path: Path, text: str, options: InputOptions = NONE) -> Loaded:
    (tmp_path / openb_files.NODE_LIST).write_text(NODES)
    path = tmp_path / "pods.csv"
    path.write_text(text)
    return load([path], options)


def refusal(tmp_path: Path, data: str | bytes, options: InputOptions = ON_CLUSTER) -> str:
    path = tmp_path / "trace"
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    with pytest.raises(TraceFileError) as error:
        load([path], options)
    return str(error.value).replace(str(tmp_path) + "/", "")


# --- openb ----------------------------------------------------------------------------------------


def test_a_pod_of_openb_runs_from_its_scheduling_to_its_deletion(tmp_path: Path) -> None:
    found = openb(tmp_path, PODS + "b,1000,0,1,500,,LS,Running,20,50,30\n" + "a,0,0,0,0,,,,5,9,6\n")
    first, second = found.scenario.jobs
    assert (first.name, first.submitted, first.duration) == ("a", 5.0, 3.0)
    assert (second.name, second.submitted, second.duration) == ("b", 20.0, 20.0)
    assert found.format == "openb"
    assert [node.name for node in found.scenario.nodes] == ["n0"]


def test_pods_and_nodes_of_openb_are_those_of_a_replay_on_a_live_cluster() -> None:
    found = load().scenario
    trace = openb_files.load()
    models = sorted({node.model for node in trace.nodes if node.model})
    project = PodProjector()
    listed = {pod.name: pod for pod in trace.pods}
    for job in found.jobs[::20]:
        arrival = Arrival(job.name, listed[job.name])
        live = trace_pods.manifest(arrival, "openb", names.SCHEDULER, models)
        assert job.pods == (project(msgspec.convert(live, PodWire)),)
    nodes = [node_manifest(node, "2026-01-01T00:00:00Z") for node in trace.nodes]
    assert list(found.nodes) == [project_node(msgspec.convert(n, NodeWire)) for n in nodes]


def test_pods_that_never_got_a_node_are_left_out_or_run_as_told(tmp_path: Path) -> None:
    text = PODS + "a,0,0,0,0,,,Pending,5,9,\nb,0,0,0,0,,,Running,5,9,6\n"
    found = openb(tmp_path, text)
    assert [job.name for job in found.scenario.jobs] == ["b"]
    assert "1 job never ran" in found.notes[0]
    assert "left out" in found.notes[0]
    kept = openb(tmp_path, text, InputOptions(default_duration=60))
    assert [job.duration for job in kept.scenario.jobs] == [60.0, 3.0]


def test_the_shipped_openb_trace_has_7255_pods_with_a_run_time() -> None:
    assert len(load(["openb"]).scenario.jobs) == 7255


def test_a_list_without_times_needs_to_be_told_them(tmp_path: Path) -> None:
    text = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,1,8,1000\n"
    with pytest.raises(TraceFileError, match=r"line 1: this list has no times .*--submit-at 0"):
        openb(tmp_path, text)
    found = openb(tmp_path, text, InputOptions(submit_at=7, default_duration=60))
    assert [(job.submitted, job.duration) for job in found.scenario.jobs] == [(7, 60)]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("a,0,0,0,0,,,,9,5,\n", "line 2, column 'deletion_time': 5 is before the pod's creation"),
        ("a,0,0,0,0,,,,5,9,4\n", "column 'scheduled_time': 4 is not between"),
        ("a,0,0,0,0,,,,5,9,10\n", "column 'scheduled_time': 10 is not between"),
        ("a,0,0,0,0,,,,-5,9,6\n", "column 'creation_time': -5 is negative"),
        ("a,0,0,0,0,,,,nan,9,6\n", "column 'creation_time': 'nan' is not a whole number"),
        ("a,0,0,0,0,,,,,9,6\n", "column 'creation_time': '' is not a whole number"),
    ],
)
def test_times_of_openb_that_cannot_be_are_told(tmp_path: Path, row: str, said: str) -> None:
    with pytest.raises(TraceFileError, match=re.escape(said)):
        openb(tmp_path, PODS + row)


def test_all_that_is_wrong_with_both_lists_is_told_at_once(tmp_path: Path) -> None:
    (tmp_path / openb_files.NODE_LIST).write_text(NODES.replace("G2", "G9"))
    (tmp_path / openb_files.POD_LIST).write_text(PODS + "a,0,0,0,0,,,,9,5,\n")
    with pytest.raises(TraceFileError) as error:
        load([tmp_path])
    assert "G9" in str(error.value)
    assert "deletion_time" in str(error.value)


# --- tables in the manner of Philly ---------------------------------------------------------------


def test_a_job_of_several_nodes_is_a_gang_of_pods_of_a_node_each(tmp_path: Path) -> None:
    found = philly(tmp_path, JOBS + "2017-10-09 07:01:55,66.0,20,1320,Team A\n").scenario
    (job,) = found.jobs
    assert job.user == "Team A"
    assert [pod.spec.gpu.whole for pod in job.pods if pod.spec.gpu] == [8, 8, 4]
    assert job.gang is not None
    assert (job.gang.namespace, job.gang.name, job.gang.min_member) == (
        job.pods[0].namespace,
        job.name,
        3,
    )
    assert {pod.group for pod in job.pods} == {job.name}
    assert re.fullmatch(r"team-a-[0-9a-f]{8}", job.pods[0].namespace)


def test_jobs_come_in_the_order_of_their_submission_and_share_specs(tmp_path: Path) -> None:
    text = JOBS + "2017-10-09 07:01:55,66,1,,a\n2017-10-09 07:00:55,60,1,,b\n"
    found = philly(tmp_path, text).scenario
    assert [(job.user, job.submitted) for job in found.jobs] == [("b", 0.0), ("a", 60.0)]
    assert found.jobs[0].pods[0].spec is found.jobs[1].pods[0].spec
    assert found.begin == 1507532455.0


@pytest.mark.parametrize(
    "text",
    [
        "submit_time,run_time,gpus,vc,id\n100,66,1,a,x\n",
        "VC,JobId,Submitted,Duration,GPU_num,colour\na,x,100,66,1,red\n",
        "\ufeffid,vc,gpus,duration,timestamp\r\nx,a,1,66,1970-01-01T00:01:40Z\r\n",
    ],
)
def test_columns_may_have_other_names_and_come_in_any_order(tmp_path: Path, text: str) -> None:
    found = philly(tmp_path, text)
    (job,) = found.scenario.jobs
    assert (job.name, job.user, job.duration, found.scenario.begin) == ("x", "a", 66.0, 100.0)


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("2017-10-09,-1,1,,a\n", "line 2, column 'duration': -1 is negative"),
        ("2017-10-09,nan,1,,a\n", "column 'duration': 'nan' is not a number"),
        ("2017-10-09,inf,1,,a\n", "column 'duration': 'inf' is not a number"),
        ("2017-10-09,1e99,1,,a\n", "column 'duration': 1e99 is not between"),
        ("2017-10-09,1,0.5,,a\n", "column 'num_gpus': '0.5' is not a whole number"),
        ("2017-10-09,1,999999999,,a\n", "column 'num_gpus': 999999999 is not between"),
        ("2017-10-09,100,2,900,a\n", "column 'gpu_time': 900 is not 2 GPUs x 100 s"),
        ("yesterday,1,1,,a\n", "column 'timestamp': 'yesterday' is no time"),
        ("-5,1,1,,a\n", "column 'timestamp': -5 is negative"),
        ("9999-01-01,1,1,,a\n", "column 'timestamp': 9999-01-01 is not between 1970 and 2100"),
        ("2017-10-09,1,1,a\n", "line 2: 4 values for 5 columns"),
    ],
)
def test_a_wrong_line_of_a_table_is_told(tmp_path: Path, row: str, said: str) -> None:
    assert said in refusal(tmp_path, JOBS + row)


def test_missing_columns_are_told_and_doubled_names(tmp_path: Path) -> None:
    assert "column 'duration': the column is missing (also called run_time" in refusal(
        tmp_path, "timestamp,vc\n1,a\n"
    )
    said = refusal(tmp_path, "id,submit,duration,gpus\nx,1,1,1\nx,2,1,1\n")
    assert "line 3, column 'id': 'x' is on line 2 already" in said


def test_pods_of_the_same_name_are_refused(tmp_path: Path) -> None:
    said = refusal(tmp_path, "id,submit,duration,gpus\nx,1,1,16\nx-1,2,1,1\n")
    assert "jobs 'x' and 'x-1' both have a pod philly/x-1: rename one of them" in said


def test_several_traces_at_once_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "jobs.csv"
    path.write_text(JOBS + "100,60,1,,a\n")
    with pytest.raises(TraceFileError, match=r"this is a trace \(philly\), and only manifests"):
        load([path, path], ON_CLUSTER)


def test_a_table_without_nodes_asks_for_them(tmp_path: Path) -> None:
    said = refusal(tmp_path, JOBS + "2017-10-09,1,1,,a\n", InputOptions())
    assert "name some with --nodes, such as 300x8xV100M32" in said
    said = refusal(tmp_path, JOBS + "2017-10-09,1,1,,a\n", InputOptions(nodes="4x0:cpu=16"))
    assert "no nodes with GPUs" in said


# --- any trace ------------------------------------------------------------------------------------


def test_a_part_of_a_trace_begins_anew_and_comes_as_fast_as_wanted(tmp_path: Path) -> None:
    text = JOBS + "".join(f"{100 + 10 * i},60,1,,a\n" for i in range(10))
    found = philly(
        tmp_path, text, InputOptions(nodes=CLUSTER, since=20, until=80, limit=4, arrivals=2.0)
    ).scenario
    assert [job.submitted for job in found.jobs] == [0.0, 5.0, 10.0, 15.0]
    assert found.begin == 120.0


def test_run_times_are_expected_as_exactly_as_wanted(tmp_path: Path) -> None:
    text = JOBS + "100,60,1,,a\n"
    for factor, limit in ((None, 0), (1.0, 60), (2.5, 150), (0.0, 0)):
        found = philly(tmp_path, text, InputOptions(nodes=CLUSTER, estimate=factor)).scenario
        assert found.jobs[0].pods[0].time_limit == limit


def test_pods_that_no_node_can_take_are_warned_of(tmp_path: Path) -> None:
    text = PODS + "a,97000,0,0,0,,,,5,9,6\nb,0,0,1,1000,T4,,,5,9,6\nc,0,0,8,1000,G2,,,5,9,6\n"
    found = openb(tmp_path, text)
    assert [line.split(" will")[0] for line in found.warnings] == ["pod 'a'", "pod 'b'"]
    assert "too little cpu (it asks for 97)" in found.warnings[0]


def test_gangs_that_the_whole_cluster_cannot_hold_are_warned_of(tmp_path: Path) -> None:
    text = JOBS + "100,60,32,,a\n100,60,33,,a\n"
    (line,) = philly(tmp_path, text).warnings
    assert "its 5 pods together ask for more nvidia.com/gpu than the whole cluster has" in line


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (InputOptions(limit=0), "--limit 0"),
        (InputOptions(since=5, until=5), "--since 5 --until 5"),
        (InputOptions(arrivals=0), "--arrivals 0"),
        (InputOptions(arrivals=1e-300), "--arrivals 1e-300: write a factor from 1e-06 to"),
        (InputOptions(arrivals=math.nan), "--arrivals nan"),
        (InputOptions(estimate=math.nan), "--estimate nan"),
        (InputOptions(default_duration=-1), "--default-duration -1"),
        (InputOptions(nodes="4x8xV100M33"), "GPU model 'V100M33' is not known"),
        (InputOptions(nodes="0x8xT4"), "0 nodes cannot be simulated"),
        (InputOptions(nodes="4x99xT4"), "a node cannot have 99 GPUs"),
        (InputOptions(nodes="4,8"), "neither a file nor a shape"),
        (InputOptions(nodes="4x8"), "is no shape of nodes"),
        (InputOptions(nodes="4x0xT4"), "is no shape of nodes"),
        (InputOptions(nodes="4x8xT4:cpu=0"), "must be more than 0"),
        (InputOptions(nodes="4x8xT4:cpu=100,memory=1GB"), "is not a quantity"),
        (InputOptions(nodes="4x8xT4:gpu=100"), "is not understood"),
        (InputOptions(since=10), "none of its 1 job is left"),
    ],
)
def test_options_that_cannot_be_are_told(tmp_path: Path, options: InputOptions, said: str) -> None:
    with pytest.raises(TraceFileError, match=said):
        openb(tmp_path, PODS + "a,0,0,0,0,,,,5,9,6\n", options)


def test_nodes_may_be_of_several_shapes(tmp_path: Path) -> None:
    shapes = InputOptions(nodes="2x8xV100M32,1x8xv100m32:cpu=64,memory=512Gi, 3x0:cpu=16")
    found = philly(tmp_path, JOBS + "100,60,1,,a\n", shapes)
    nodes = found.scenario.nodes
    assert [node.name for node in nodes] == [
        "v100m32x8-0000",
        "v100m32x8-0001",
        "v100m32x8-0002",
        "cpu-0000",
        "cpu-0001",
        "cpu-0002",
    ]
    assert [node.allocatable["cpu"] for node in nodes] == [96000] * 2 + [64000] + [16000] * 3
    assert nodes[2].allocatable["memory"] == 512 << 30
    assert [len(node.gpus) for node in nodes] == [8, 8, 8, 0, 0, 0]


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"", "trace: the file is empty"),
        (b" \n\n", "trace: the file is empty"),
        (b"\x00\x01\x02\xff\xfe", "line 1: this is not UTF-8 text"),
        (b"a\nb\n\xe4\n", "line 3: this is not UTF-8 text"),
        (b"hello\n", "line 1: this is no format that is known"),
        (b"\x1f\x8b\x08rubbish", "the compressed file is damaged"),
        (
            gzip.compress(b"timestamp,duration,num_gpus\n", mtime=0)[:-6],
            "the compressed file is damaged",
        ),
        (NODES.encode(), "this is a list of nodes: give it with --nodes"),
        (JOBS.encode(), "line 1: there is a header, but nothing below it"),
    ],
)
def test_what_is_no_trace_is_told(tmp_path: Path, data: bytes, said: str) -> None:
    assert said in refusal(tmp_path, data)


def test_a_file_that_is_not_there_is_told_with_the_shipped_ones() -> None:
    with pytest.raises(TraceFileError, match=r"no such file .*openb, philly, gaia"):
        load(["nowhere"])


def test_the_shipped_week_of_philly_needs_nothing_else() -> None:
    found = load(["philly"])
    assert len(found.scenario.jobs) == 6391
    assert sum(len(node.gpus) for node in found.scenario.nodes) == 480
    assert not found.warnings
    assert {job.duration > 0 for job in found.scenario.jobs} == {True}


@pytest.mark.parametrize("folder", ["philly", "gaia", "p100"])
def test_the_shipped_bytes_are_those_that_the_origin_note_lists(folder: str) -> None:
    data = resources.files("alnair") / "data" / folder
    origin = (data / "ORIGIN.md").read_text()
    ((name, digest),) = re.findall(r"\| `(\S+)` \| .* \| `([0-9a-f]{64})` \|", origin)
    content = (data / name).read_bytes() if (data / name).is_file() else b""
    if not content:
        compressed = (data / f"{name}.gz").read_bytes()
        assert compressed[3:8] == bytes(5), "a name or a time inside would not be reproducible"
        content = gzip.decompress(compressed)
    assert hashlib.sha256(content).hexdigest() == digest


# --- SWF ------------------------------------------------------------------------------------------

HEADER = "; UnixStartTime: 1000\n; MaxNodes: 2\n; MaxProcs: 25\n"


def line(**fields: object) -> str:
    """A line of SWF: job 1 of user 5, 60 s on 4 processors, asked for 90 s."""
    keys = "job submit wait run procs cpu mem asked time memory status user group app"
    values = dict.fromkeys((*keys.split(), *"qpjt"), -1)
    values |= {"job": 1, "submit": 7, "run": 60, "procs": 4, "time": 90, "status": 1, "user": 5}
    return " ".join(str(v) for v in (values | fields).values()) + "\n"


def swf(tmp_path: Path, text: str, options: InputOptions = NONE) -> Loaded:
    path = tmp_path / "log.swf"
    path.write_text(text)
    return load([path], options)


def test_a_job_of_swf_asks_for_cores_and_says_how_long_it_may_take(tmp_path: Path) -> None:
    found = swf(tmp_path, HEADER + line(memory=1024))
    (job,) = found.scenario.jobs
    (pod,) = job.pods
    assert (job.name, job.user, job.submitted, job.duration) == ("job-1", "user-5", 7.0, 60.0)
    assert dict(pod.spec.requests) == {"cpu": 4000, "memory": 4 << 20, "pods": 1}
    assert (pod.time_limit, pod.namespace) == (90, "user-5")
    assert [node.allocatable["cpu"] for node in found.scenario.nodes] == [13000, 12000]
    assert found.scenario.begin == 1000.0


def test_a_job_of_more_processors_than_a_node_has_is_a_gang(tmp_path: Path) -> None:
    (job,) = swf(
        tmp_path, HEADER + line(procs=30), InputOptions(nodes="9x0:cpu=12,1x0:cpu=48")
    ).scenario.jobs
    assert [dict(pod.spec.requests)["cpu"] for pod in job.pods] == [12000, 12000, 6000]
    assert job.gang is not None
    assert job.gang.min_member == 3


def test_cancelled_jobs_and_parts_of_jobs_are_left_out_and_failed_ones_are_not(
    tmp_path: Path,
) -> None:
    text = HEADER + line(status=0) + line(job=2, run=-1, status=5) + line(job=3, status=2)
    found = swf(tmp_path, text + line(job=3, status=3) + line(job=4, procs=-1, asked=2))
    assert [job.name for job in found.scenario.jobs] == ["job-1", "job-3", "job-4"]
    assert "1 job never ran" in found.notes[0]
    assert "left out: 1 line for parts of jobs" in found.notes[1]


@pytest.mark.parametrize(
    ("row", "said"),
    [
        ("1 2 3\n" + line(), "line 4: 3 fields, but a line of SWF has 18"),
        (line(run="nan"), "line 4, column '4 (run time)': 'nan' is not a number"),
        (line(submit=-7), "column '2 (submit time)': -7 is negative"),
        (line(submit=-1), "column '2 (submit time)': is unknown: say when"),
        (line(procs=1e8), "column '5 (allocated processors)': 100000000.0 is more than"),
        (line(run="9" * 12), "column '4 (run time)': 999999999999 is more than"),
        (line(job=1.5), "column '1 (job number)': 1.5 is no number of a job"),
        (line() + line(), "line 5, column '1 (job number)': job 1 is on line 4 already"),
        ("", "there is no job in it"),
    ],
)
def test_a_wrong_line_of_swf_is_told(tmp_path: Path, row: str, said: str) -> None:
    assert said in refusal(tmp_path, HEADER + row)


def test_swf_without_a_header_asks_for_nodes(tmp_path: Path) -> None:
    assert "--nodes, such as 150x0:cpu=12" in refusal(tmp_path, line(), NONE)


def test_the_shipped_weeks_of_gaia_need_nothing_else() -> None:
    found = load(["gaia"])
    assert len(found.scenario.jobs) == 5109
    assert sum(node.allocatable["cpu"] for node in found.scenario.nodes) == 2_004_000
    assert not found.warnings


# --- what is made up ------------------------------------------------------------------------------


def test_made_up_jobs_are_the_same_for_the_same_seed_and_of_the_asked_mix() -> None:
    mix = Mix(jobs=2000, per_hour=120, gpus=((0.25, 1), (12, 3)), median=600, users=3)
    options = InputOptions(nodes=CLUSTER, mix=mix, seed=5)
    first = load(["synthetic"], options).scenario.jobs
    assert first == load(["synthetic"], options).scenario.jobs
    assert first != load(["synthetic"], msgspec.structs.replace(options, seed=6)).scenario.jobs
    gangs = sum(job.gang is not None for job in first)
    assert 1400 < gangs < 1600
    assert 0.9 < first[-1].submitted / (2000 / 120 * 3600) < 1.1
    assert 500 < sorted(job.duration for job in first)[1000] < 720
    assert {job.user for job in first} == {"user-0", "user-1", "user-2"}


@pytest.mark.parametrize(
    ("mix", "said"),
    [
        (Mix(jobs=0), "0 jobs cannot be made up"),
        (Mix(per_hour=0), "0 jobs an hour"),
        (Mix(per_hour=1e-300), "1e-300 jobs an hour cannot be made up: write 1e-06 or more"),
        (Mix(median=math.nan), "run times of nan s"),
        (Mix(users=0), "0 users"),
        (Mix(gpus=()), "a size of jobs is"),
        (Mix(gpus=((1.5, 1),)), "a size of jobs is"),
        (Mix(gpus=((1, 0),)), "no size of jobs occurs"),
    ],
)
def test_a_mix_that_cannot_be_is_told(mix: Mix, said: str) -> None:
    with pytest.raises(TraceFileError, match=said):
        load(["synthetic"], InputOptions(nodes=CLUSTER, mix=mix))


def test_nodes_fail_and_come_back_by_draws_of_their_own(tmp_path: Path) -> None:
    text = JOBS + "100,8640000,1,,a\n"
    options = InputOptions(nodes="40x8xT4", node_mtbf=864000, node_mttr=3600)
    events = philly(tmp_path, text, options).scenario.node_events
    assert [e.time for e in events] == sorted(e.time for e in events)
    failing = [e.time for e in events if e.what == "fails"]
    assert 350 < len(failing) < 450
    assert max(failing) < 8640000
    assert len(events) == 2 * len(failing)
    fewer = philly(tmp_path, text, msgspec.structs.replace(options, nodes="2x8xT4"))
    own = [e for e in events if e.node.name in ("t4x8-0000", "t4x8-0001")]
    assert list(fewer.scenario.node_events) == own
    for mtbf in (math.inf, -1):
        with pytest.raises(TraceFileError, match="--node-mtbf"):
            philly(tmp_path, text, msgspec.structs.replace(options, node_mtbf=mtbf))
    with pytest.raises(TraceFileError, match="would fail more than"):
        philly(tmp_path, text, msgspec.structs.replace(options, node_mtbf=1, node_mttr=1))


def test_measured_utilisations_are_drawn_by_the_seed_and_bounded_by_enforced_shares(
    tmp_path: Path,
) -> None:
    runs = {run.kind: run.util for run in utilisation.runs()}
    assert len(runs) > 40
    assert runs["MobileNet (batch size 1024)"] == pytest.approx((46.07 + 30.27) / 2)
    rows = "".join(f"p{i},0,0,1,{400 if i % 2 else 1000},,,,5,9,6\n" for i in range(60))
    drawn = {
        shares: openb(
            tmp_path, PODS + rows, InputOptions(utilisation="measured", shares=shares, seed=3)
        ).scenario.jobs
        for shares in ("compute", "memory")
    }
    assert all(job.util == runs[job.kind] for job in drawn["memory"])
    assert [job.kind for job in drawn["memory"]] == [job.kind for job in drawn["compute"]]
    bounded = [job for job in drawn["compute"] if job.util != runs[job.kind]]
    assert bounded
    assert all(job.util == 40.0 and runs[job.kind] > 40 for job in bounded)
    demands = [job.pods[0].spec.gpu for job in drawn["memory"]]
    assert not any(demand.compute for demand in demands if demand)
