"""What a simulation is made of: the one entry, the options, the shipped traces, what is refused."""

import gzip
import hashlib
import math
import re
from importlib import resources
from pathlib import Path

import msgspec
import pytest

from alnair.kube.projection import PodProjector, project_node
from alnair.kube.simulated_nodes import manifest as node_manifest
from alnair.kube.wire import NodeWire, PodWire
from alnair.model import names
from alnair.sim import trace_pods, traces
from alnair.sim.arrivals import Arrival
from alnair.sim.files import TraceFileError
from alnair.sim.sources import Loaded, Options, load

PODS = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,qos,pod_phase,"
    "creation_time,deletion_time,scheduled_time\n"
)
NODES = "sn,cpu_milli,memory_mib,gpu,model\nn0,96000,393216,8,G2\n"
JOBS = "timestamp,duration,num_gpus,gpu_time,cluster\n"
CLUSTER = "4x8xV100M32"
ON_CLUSTER = Options(nodes=CLUSTER)
NONE = Options()


def philly(tmp_path: Path, text: str, options: Options = ON_CLUSTER) -> Loaded:
    path = tmp_path / "jobs.csv"
    path.write_text(text)
    return load([path], options)


def openb(tmp_path: Path, text: str, options: Options = NONE) -> Loaded:
    (tmp_path / traces.NODE_LIST).write_text(NODES)
    path = tmp_path / "pods.csv"
    path.write_text(text)
    return load([path], options)


def refusal(tmp_path: Path, data: str | bytes, options: Options = ON_CLUSTER) -> str:
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
    trace = traces.load()
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
    assert "1 jobs never ran" in found.notes[0]
    assert "left out" in found.notes[0]
    kept = openb(tmp_path, text, Options(default_duration=60))
    assert [job.duration for job in kept.scenario.jobs] == [60.0, 3.0]


def test_the_shipped_openb_trace_has_7255_pods_with_a_run_time() -> None:
    assert len(load(["openb"]).scenario.jobs) == 7255


def test_a_list_without_times_needs_to_be_told_them(tmp_path: Path) -> None:
    text = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,1,8,1000\n"
    with pytest.raises(TraceFileError, match=r"line 1: this list has no times .*--submit-at 0"):
        openb(tmp_path, text)
    found = openb(tmp_path, text, Options(submit_at=7, default_duration=60))
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
    (tmp_path / traces.NODE_LIST).write_text(NODES.replace("G2", "G9"))
    (tmp_path / traces.POD_LIST).write_text(PODS + "a,0,0,0,0,,,,9,5,\n")
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


def test_a_table_without_nodes_asks_for_them(tmp_path: Path) -> None:
    said = refusal(tmp_path, JOBS + "2017-10-09,1,1,,a\n", Options())
    assert "name some with --nodes, such as 300x8xV100M32" in said
    said = refusal(tmp_path, JOBS + "2017-10-09,1,1,,a\n", Options(nodes="4x16xcpu"))
    assert "no nodes with GPUs" in said


# --- any trace ------------------------------------------------------------------------------------


def test_a_part_of_a_trace_begins_anew_and_comes_as_fast_as_wanted(tmp_path: Path) -> None:
    text = JOBS + "".join(f"{100 + 10 * i},60,1,,a\n" for i in range(10))
    found = philly(
        tmp_path, text, Options(nodes=CLUSTER, since=20, until=80, limit=4, arrivals=2.0)
    ).scenario
    assert [job.submitted for job in found.jobs] == [0.0, 5.0, 10.0, 15.0]
    assert found.begin == 120.0


def test_run_times_are_expected_as_exactly_as_wanted(tmp_path: Path) -> None:
    text = JOBS + "100,60,1,,a\n"
    for factor, limit in ((None, 0), (1.0, 60), (2.5, 150), (0.0, 0)):
        found = philly(tmp_path, text, Options(nodes=CLUSTER, estimate=factor)).scenario
        assert found.jobs[0].pods[0].time_limit == limit


def test_pods_that_no_node_can_take_are_warned_of(tmp_path: Path) -> None:
    text = PODS + "a,97000,0,0,0,,,,5,9,6\nb,0,0,1,1000,T4,,,5,9,6\nc,0,0,8,1000,G2,,,5,9,6\n"
    found = openb(tmp_path, text)
    assert [line.split(" will")[0] for line in found.warnings] == ["pod 'a'", "pod 'b'"]
    assert "too little cpu (it asks for 97)" in found.warnings[0]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (Options(limit=0), "--limit 0"),
        (Options(since=5, until=5), "--since 5 --until 5"),
        (Options(arrivals=0), "--arrivals 0"),
        (Options(arrivals=math.nan), "--arrivals nan"),
        (Options(estimate=math.nan), "--estimate nan"),
        (Options(default_duration=-1), "--default-duration -1"),
        (Options(nodes="4x8xV100M33"), "GPU model 'V100M33' is not known"),
        (Options(nodes="0x8xT4"), "0 nodes cannot be simulated"),
        (Options(nodes="4x99xT4"), "a node cannot have 99 GPUs"),
        (Options(nodes="4x8"), "neither a file nor a shape"),
        (Options(nodes="4x8xT4/0c"), "cannot be simulated"),
        (Options(nodes="4x8xT4/100c/1Gb"), "is no shape of nodes"),
        (Options(since=10), "none of its 1 jobs is left"),
    ],
)
def test_options_that_cannot_be_are_told(tmp_path: Path, options: Options, said: str) -> None:
    with pytest.raises(TraceFileError, match=said):
        openb(tmp_path, PODS + "a,0,0,0,0,,,,5,9,6\n", options)


def test_nodes_may_be_of_several_shapes(tmp_path: Path) -> None:
    shapes = Options(nodes="2x8xV100M32,1x8xv100m32/64c/512Gi,3x16xcpu")
    found = philly(tmp_path, JOBS + "100,60,1,,a\n", shapes)
    nodes = found.scenario.nodes
    assert [node.name for node in nodes] == [
        "v100m32x8-0000",
        "v100m32x8-0001",
        "v100m32x8-0002",
        "cpu16-0000",
        "cpu16-0001",
        "cpu16-0002",
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
        (gzip.compress(b"timestamp,duration,num_gpus\n")[:-6], "the compressed file is damaged"),
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


@pytest.mark.parametrize("folder", ["philly", "gaia"])
def test_the_shipped_bytes_are_those_that_the_origin_note_lists(folder: str) -> None:
    data = resources.files("alnair") / "data" / folder
    origin = (data / "ORIGIN.md").read_text()
    ((name, digest),) = re.findall(r"\| `(\S+)` \| .* \| `([0-9a-f]{64})` \|", origin)
    compressed = (data / f"{name}.gz").read_bytes()
    assert hashlib.sha256(gzip.decompress(compressed)).hexdigest() == digest
    assert compressed[3:8] == bytes(5), "a name or a time inside would not be reproducible"
