"""Lists of nodes to simulate, and what is wrong with them."""

import gzip
import re
from pathlib import Path

import pytest

from alnair.local import nodelist
from alnair.local.errors import InvalidArgumentError, LocalClusterError
from alnair.traces.openb import TraceNode

HEADER = "sn,cpu_milli,memory_mib,gpu,model\n"


def test_nodes_alike_are_named_by_their_kind() -> None:
    found = nodelist.alike(2, 8, "a100")
    assert found == [
        TraceNode("a100x8-0000", 96_000, 393_216, 8, "A100"),
        TraceNode("a100x8-0001", 96_000, 393_216, 8, "A100"),
    ]


def test_more_of_a_kind_begin_with_those_that_were_there() -> None:
    assert nodelist.alike(5, 2, "T4")[:3] == nodelist.alike(3, 2, "T4")


def test_nodes_without_gpus_need_no_model() -> None:
    assert nodelist.alike(1, 0, "no such") == [TraceNode("cpu-0000", 12_000, 49_152, 0, "")]


@pytest.mark.parametrize(
    ("count", "gpus", "model", "said"),
    [
        (-1, 1, "T4", "-1 nodes cannot be simulated: ask for 0 to 10000"),
        (10_001, 1, "T4", "10001 nodes cannot be simulated"),
        (1, -1, "T4", "a node cannot have -1 GPUs: ask for 0 to 64"),
        (1, 65, "T4", "a node cannot have 65 GPUs"),
        (1, 1, "GTX", "GPU model 'GTX' is not known; known are T4, P100"),
    ],
)
def test_numbers_out_of_range_and_unknown_models_are_told(
    count: int, gpus: int, model: str, said: str
) -> None:
    with pytest.raises(LocalClusterError, match=said):
        nodelist.alike(count, gpus, model)


def test_a_number_is_of_nodes_alike_and_shapes_are_what_simulations_take() -> None:
    assert nodelist.wished("2", None, None) == nodelist.alike(2, 8, "A100")
    assert nodelist.wished("2", 0, None) == nodelist.alike(2, 0, "")
    assert nodelist.wished("2", None, "t4") == nodelist.alike(2, 8, "T4")
    several = nodelist.wished("2x8xa100, 1x0:cpu=32,memory=128Gi", None, None)
    assert several == [
        *nodelist.alike(2, 8, "A100"),
        TraceNode("cpu-0000", 32_000, 131_072, 0, ""),
    ]


@pytest.mark.parametrize(
    ("text", "gpus", "said"),
    [
        ("many", None, "'many' is neither a number nor shapes of nodes: write 20, 300x8xV100M32"),
        ("2x8xA100", 8, "'2x8xA100' says the GPUs itself: leave --gpus-per-node"),
        ("2x8", None, "'2x8' is no shape of nodes"),
        ("20000", None, "20000 nodes cannot be simulated"),
    ],
)
def test_nodes_that_cannot_be_understood_are_told(text: str, gpus: int | None, said: str) -> None:
    with pytest.raises(InvalidArgumentError, match=re.escape(said)):
        nodelist.wished(text, gpus, None)


def test_a_file_is_read_plain_or_compressed(tmp_path: Path) -> None:
    text = HEADER + "n1,32000,262144,0,\nn2,64000,262144,2,P100\n"
    plain, packed = tmp_path / "nodes.csv", tmp_path / "nodes.csv.gz"
    plain.write_text(text)
    packed.write_bytes(gzip.compress(text.encode(), mtime=0))
    expected = [
        TraceNode("n1", 32_000, 262_144, 0, ""),
        TraceNode("n2", 64_000, 262_144, 2, "P100"),
    ]
    assert nodelist.read(plain) == expected
    assert nodelist.read(packed) == expected


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "the file is empty"),
        (b"sn,cpu_milli,memory_mib,gpu\nn,1,1,0\n", "line 1, column 'model': .*missing"),
        (b"sn,cpu_milli,memory_mib,gpu,model,x\n", "line 1, column 'x': unknown column"),
        (HEADER.encode() + b"n,-1,1,0,\n", "line 2, column 'cpu_milli': -1 is negative"),
        (HEADER.encode() + b"n,1,1.5,0,\n", "line 2, column 'memory_mib': '1.5' is not a whole"),
        (HEADER.encode() + b"n,1,1,0,\nn,1,1,0,\n", "line 3, column 'sn': .*line 2 already"),
        (HEADER.encode() + b"n,1,1,1,X9\n", "line 2, column 'model': .*'X9' is not known"),
        (HEADER.encode() + b"n,1,1\n", "line 2: 3 values for 5 columns"),
        (b"\xff\xfe\x00", "this is not text: give a CSV file"),
        (b"\x1f\x8b\x08\x00broken", "damaged gzip file"),
    ],
)
def test_what_is_wrong_with_a_file_is_told_with_its_place(
    tmp_path: Path, content: bytes, said: str
) -> None:
    path = tmp_path / "nodes.csv"
    path.write_bytes(content)
    with pytest.raises(LocalClusterError, match=said) as caught:
        nodelist.read(path)
    assert str(path) in str(caught.value)


def test_a_file_that_is_not_there_is_told(tmp_path: Path) -> None:
    with pytest.raises(LocalClusterError, match=r"cannot be read \(No such file"):
        nodelist.read(tmp_path / "none.csv")
    with pytest.raises(LocalClusterError, match=r"cannot be read \(Is a directory"):
        nodelist.read(tmp_path)
