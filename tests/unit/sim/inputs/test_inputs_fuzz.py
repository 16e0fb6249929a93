"""Whatever a file holds: it is read, or refused by a text with the file in it, and nothing else."""

import gzip
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from alnair.sim.inputs import InputOptions, load
from alnair.traces.files import TraceFileError

PHILLY = "timestamp,duration,num_gpus,gpu_time,cluster\n2017-10-09 07:01:55,66.0,9,594,a\n"
OPENB = (
    "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec,creation_time,deletion_time,"
    "scheduled_time\na,1000,10,1,500,T4,1,9,2\n"
)
SWF = "; MaxNodes: 2\n; MaxProcs: 24\n1 0 1 60 4 1 1 4 90 -1 1 1 1 1 1 -1 -1 -1\n"
POD = (
    "apiVersion: v1\nkind: Pod\nmetadata: {name: a, labels: {b: c}}\nspec:\n  containers:\n"
    "  - name: x\n    resources: {limits: {nvidia.com/gpu: 1, cpu: 500m}}\n"
)
JOB = (
    '{"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "a"}, "spec": {"parallelism":'
    ' 2, "template": {"spec": {"containers": [{"name": "x"}]}}}}'
)
SEEDS = (PHILLY, OPENB, SWF, POD, JOB)
#: What breaks parsers: numbers at their ends, other scripts, quotes, tabs, nesting, anchors.
PIECES = (
    *("", ",", "\n", "\r\n", '"', "'", "\x00", "\t", "-", "-1", "nan", "inf", "1e999", "NaN", ".5"),
    *("9" * 30, "٣", "\u2028", "\ufeff", "&a", "*a", "<<: *a", "[", "{", "}", "]", ": ", "---\n"),
    *("!!binary x", "? x", "|", ">", "null", "~", "true", "0x1F", "1_000", "2017-10-09", "%", "@"),
)
settings.register_profile(
    "files",
    max_examples=120,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
FILES = settings.get_profile("files")
NODES = InputOptions(nodes="2x8xT4")


def feed(path: Path, data: bytes) -> None:
    path.write_bytes(data)
    refused = ""
    try:
        jobs = load([path], NODES).scenario.jobs
    except TraceFileError as error:
        jobs, refused = (), str(error)
    assert bool(jobs) != (str(path) in refused)
    assert all(job.submitted >= 0 and job.duration >= 0 and job.pods for job in jobs)
    assert len({job.name for job in jobs}) == len(jobs)


@settings(FILES)
@given(
    seed=st.sampled_from(SEEDS),
    where=st.lists(st.tuples(st.floats(0, 1), st.sampled_from(PIECES)), min_size=1, max_size=4),
    cut=st.integers(0, 6),
)
def test_files_with_a_few_things_wrong_are_read_or_refused(
    tmp_path: Path, seed: str, where: list[tuple[float, str]], cut: int
) -> None:
    text = seed
    for part, piece in where:
        at = int(part * len(text))
        text = text[:at] + piece + text[at + cut :]
    feed(tmp_path / "trace", text.encode())


@settings(FILES)
@given(data=st.binary(max_size=200), packed=st.booleans())
def test_bytes_of_any_kind_are_refused(tmp_path: Path, data: bytes, packed: bool) -> None:
    feed(tmp_path / "trace", gzip.compress(data, mtime=0) if packed else data)


@pytest.mark.parametrize("seed", range(3))
def test_damaged_archives_are_refused(tmp_path: Path, seed: int) -> None:
    chance = random.Random(seed)
    for text in SEEDS:
        data = bytearray(gzip.compress(text.encode(), mtime=0))
        for _ in range(20):
            changed = bytearray(data)
            changed[chance.randrange(2, len(data))] ^= 1 << chance.randrange(8)
            feed(tmp_path / "trace", bytes(changed[: chance.randrange(2, len(data) + 1)]))
