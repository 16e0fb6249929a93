"""The trace reader: right files are read, and everything wrong is told with place and fix."""

import gzip
import hashlib
import re
from pathlib import Path

import pytest

from alnair.traces import openb_files
from alnair.traces.csv_table import Problem, TableError
from alnair.traces.files import TraceFileError
from alnair.traces.openb import TraceNode, TracePod, read_nodes, read_pods

NODES = "sn,cpu_milli,memory_mib,gpu,model\nn0,64000,262144,2,P100\n"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"


def nodes(text: str) -> tuple[tuple[TraceNode, ...], list[Problem]]:
    problems: list[Problem] = []
    return read_nodes(text.splitlines(keepends=True), "nodes.csv", problems), problems


def pods(text: str) -> tuple[tuple[TracePod, ...], list[Problem]]:
    problems: list[Problem] = []
    return read_pods(text.splitlines(keepends=True), "pods.csv", problems), problems


def test_a_node_is_read() -> None:
    found, problems = nodes(NODES)
    assert found == (TraceNode("n0", 64000, 262144, 2, "P100"),)
    assert not problems


def test_columns_may_come_in_any_order_and_models_may_be_repeated() -> None:
    found, problems = pods(
        "gpu_milli,name,gpu_spec,cpu_milli,memory_mib,num_gpu\n460,p,V100M16|T4|T4,6000,0,1\n"
    )
    assert not problems
    assert found == (TracePod("p", 6000, 0, 1, 460, ("T4", "V100M16"), "V100M16|T4|T4"),)


def test_the_model_column_may_be_absent() -> None:
    found, problems = pods("name,cpu_milli,memory_mib,num_gpu,gpu_milli\np,1,1,8,1000\n")
    assert not problems
    assert found[0].models == ()
    assert found[0].demand == 8000


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "pods.csv: the file is empty: expected a header with name,cpu_milli"),
        (PODS, "line 1: there is a header, but nothing below it"),
        ("name,colour\n", "line 1, column 'colour': unknown column; known are name,"),
        ("name,cpu_milli\n", "line 1, column 'num_gpu': the column is missing; needed are"),
        (PODS.replace("cpu_milli", "name"), "column 'name': the column is there twice"),
        (PODS + "p,1,1,1\n", "line 2: 4 values for 6 columns"),
        (PODS + "p,many,1,0,0,\n", "line 2, column 'cpu_milli': 'many' is not a whole number"),
        (PODS + f"p,{10**30},1,0,0,\n", f"'cpu_milli': {10**30} is not between 0 and 1000000000"),
        (PODS + f"p,-{10**30},1,0,0,\n", "000 is negative: write 0 or more"),
        (PODS + "p,1.5,1,0,0,\n", "column 'cpu_milli': '1.5' is not a whole number"),
        (PODS + "p,1_000,1,0,0,\n", "column 'cpu_milli': '1_000' is not a whole number"),
        (PODS + "p,-4000,1,0,0,\n", "column 'cpu_milli': -4000 is negative: write 0 or more"),
        (PODS + "p,1,9999999999,0,0,\n", "column 'memory_mib': 9999999999 is not between 0"),
        (PODS + "p,1,1,0,0,\np,1,1,0,0,\n", "line 3, column 'name': 'p' is on line 2 already"),
        (PODS + "My Pod,1,1,0,0,\n", "column 'name': 'My Pod' cannot name an object"),
        (PODS + "p,1,1,1,1300,\n", "column 'gpu_milli': asks for 130 % of a GPU"),
        (PODS + "p,1,1,2,500,\n", "column 'gpu_milli': 2 GPUs with 500 milli of each"),
        (PODS + "p,1,1,1,0,\n", "column 'gpu_milli': 1 GPU with 0 milli of each"),
        (PODS + "p,1,1,0,500,\n", "column 'gpu_milli': 0 GPUs with 500 milli of each"),
        (PODS + "p,1,1,0,0,T4\n", "column 'gpu_spec': 0 GPUs with the model 'T4'"),
        (PODS + "p,1,1,1,1000,T5\n", "column 'gpu_spec': GPU model 'T5' is not known"),
        (PODS + "p,1,1,1,1000,T4|\n", "column 'gpu_spec': GPU model '' is not known"),
        (PODS + 'p,"1,1,0,0,\n', "this is not CSV"),
    ],
)
def test_what_is_wrong_with_a_pod_list_is_told(text: str, said: str) -> None:
    _, problems = pods(text)
    assert [str(p) for p in problems if said in str(p)], [str(p) for p in problems]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (NODES + "n0,1,1,0,\n", "line 3, column 'sn': 'n0' is on line 2 already"),
        (NODES + "n1,1,1,0,T4\n", "column 'model': 0 GPUs with the model 'T4'"),
        (NODES + "n1,1,1,2,T5\n", "column 'model': GPU model 'T5' is not known"),
        (NODES + "n1,1,1,-2,T4\n", "column 'gpu': -2 is negative"),
        (NODES + "n1,0,1,2,T4\n", "column 'cpu_milli': 0 is not between 1 and"),
        (NODES + "n1,1,1,100,T4\n", "column 'gpu': 100 is not between 0 and 64"),
    ],
)
def test_what_is_wrong_with_a_node_list_is_told(text: str, said: str) -> None:
    _, problems = nodes(text)
    assert [str(p) for p in problems if said in str(p)], [str(p) for p in problems]


def test_all_problems_of_a_line_and_of_a_file_are_told_and_a_long_list_is_cut() -> None:
    _, problems = pods(PODS + "".join(f"P{i},-1,x,1,1300,T5\n" for i in range(10)))
    assert len(problems) == 50
    shown = str(TableError(problems)).splitlines()
    assert len(shown) == 21
    assert shown[-1] == "… and 30 more, 50 in all"


def test_both_files_are_checked_before_anything_happens(tmp_path: Path) -> None:
    (tmp_path / "nodes.csv").write_text("sn\n")
    (tmp_path / "pods.csv").write_text("name\n")
    with pytest.raises(TraceFileError) as error:
        openb_files.load(tmp_path / "nodes.csv", tmp_path / "pods.csv")
    assert "nodes.csv, line 1" in str(error.value)
    assert "pods.csv, line 1" in str(error.value)


def test_lists_are_found_in_a_folder_by_name_plain_or_compressed(tmp_path: Path) -> None:
    (tmp_path / "openb_node_list_gpu_node.csv").write_text(NODES)
    (tmp_path / "openb_pod_list_small.csv.gz").write_bytes(
        gzip.compress((PODS + "p,1,1,0,0,\n").encode(), mtime=0)
    )
    for given in ("small", "openb_pod_list_small.csv", tmp_path / "openb_pod_list_small.csv.gz"):
        found = openb_files.load(tmp_path, Path(given))
        assert [pod.name for pod in found.pods] == ["p"]


def test_another_name_of_the_node_list_will_do_if_there_is_just_one(tmp_path: Path) -> None:
    (tmp_path / "my-nodes.csv").write_text(NODES)
    (tmp_path / "pods.csv").write_text(PODS + "p,1,1,0,0,\n")
    assert len(openb_files.load(tmp_path, Path("pods.csv")).nodes) == 1
    (tmp_path / "other_node_list.csv").write_text(NODES)
    with pytest.raises(TraceFileError, match=r"there are: my-nodes.csv, other_node_list.csv"):
        openb_files.load(tmp_path, Path("pods.csv"))


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (None, "No such file"),
        (b"\x1f\x8b\x08rubbish", "damaged|cannot be read"),
        (gzip.compress(b"name\n" * 1000, mtime=0)[:-20], "damaged"),
        (b"\xff\xfe\x00n", "not UTF-8"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(
    tmp_path: Path, content: bytes | None, said: str
) -> None:
    path = tmp_path / "nodes.csv"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(TraceFileError, match=re.escape(str(path))) as error:
        openb_files.load(path)
    assert re.search(said, str(error.value))


def test_the_shipped_trace_is_the_published_one() -> None:
    found = openb_files.load()
    assert len(found.nodes) == 1213
    assert sum(node.gpus for node in found.nodes) == 6212
    assert len(found.pods) == 8152
    assert sum(1 for pod in found.pods if 0 < pod.gpu_milli < 1000) == 3078
    assert all(pod.gpu_milli % 10 == 0 for pod in found.pods)
    assert len(openb_files.names("default-42.pods")) == 10866
    assert sorted(openb_files.names("default-42.nodes")) == [node.name for node in found.nodes]


def test_the_shipped_bytes_are_those_that_the_origin_note_lists() -> None:
    origin = (openb_files.packaged() / "ORIGIN.md").read_text()
    listed = dict(re.findall(r"\| `(\S+)` \| .* \| `([0-9a-f]{64})` \|", origin))
    assert len(listed) == 4
    for name, digest in listed.items():
        compressed = (openb_files.packaged() / f"{name}.gz").read_bytes()
        assert hashlib.sha256(gzip.decompress(compressed)).hexdigest() == digest
        assert compressed[3:8] == bytes(5), "a name or a time inside would not be reproducible"


def test_an_order_without_names_is_told(tmp_path: Path) -> None:
    (tmp_path / "order").write_text("\n \n")
    with pytest.raises(TraceFileError, match="there is no name in it"):
        openb_files.names(str(tmp_path / "order"))
