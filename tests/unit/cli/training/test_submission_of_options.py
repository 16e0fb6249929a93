"""What `alnair submit` makes of its options, and what it says of wrong ones."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner, Result

from alnair.cli import main
from alnair.elastic.submission import MOST_BYTES
from alnair.kube.objects.training_jobs import ElasticHorovodJobWire, ElasticTorchJobWire


@pytest.fixture
def script(tmp_path: Path) -> Path:
    path = tmp_path / "Train.py"
    path.write_text("print('x')\n")
    return path


def submit(*words: object) -> Result:
    return CliRunner().invoke(main.build(["submit"]), ["submit", *map(str, words)])


def made(*words: object) -> list[dict[str, Any]]:
    done = submit("--dry-run", "-o", "json", *words)
    assert done.exit_code == 0, done.output
    items: list[dict[str, Any]] = msgspec.json.decode(done.stdout)["items"]
    return items


def refused(*words: object) -> str:
    done = submit("--dry-run", *words)
    assert done.exit_code == 2, done.output
    return " ".join(done.stderr.split())


def test_a_script_travels_with_its_job_and_its_arguments_come_after(script: Path) -> None:
    held, job = made(script, "--image", "i:1", "-w", "2..8", "--env", "A=b=c", "--", "--lr", "0.1")
    assert (held["kind"], held["data"]) == ("ConfigMap", {"Train.py": "print('x')\n"})
    workers = msgspec.convert(job, ElasticTorchJobWire).spec.workers_spec
    assert workers.python_command == ["python3", "-u", "/alnair-script/Train.py", "--lr", "0.1"]
    assert (workers.min_replicas, workers.max_replicas, workers.gpus_per_worker) == (2, 8, 1)
    assert workers.env == [{"name": "A", "value": "b=c"}]
    assert job["metadata"]["name"] == "train"
    volume = workers.volumes[0] if workers.volumes else {}
    assert volume["configMap"]["name"] == held["metadata"]["name"]


def test_a_command_of_the_image_needs_a_name_and_no_script() -> None:
    slice_of = ("--gpu-memory", "8Gi", "--gpu-share", 50)
    [job] = made(
        "--job", "m", "--image", "i:1", "--kind", "horovod", *slice_of, "--", "python", "x"
    )
    spec = msgspec.convert(job, ElasticHorovodJobWire).spec
    assert spec.launcher_spec.python_command == ["python", "x"]
    assert spec.workers_spec.gpu_slice is not None
    assert spec.workers_spec.gpu_slice.memory_mib == 8192
    assert spec.workers_spec.gpu_slice.compute_percent == 50
    assert spec.workers_spec.max_replicas == 1


def test_a_program_of_the_image_is_not_looked_for_here() -> None:
    [job] = made("--job", "m", "--image", "i:1", "--", "/app/nowhere/train.py", "--fast")
    assert job["spec"]["workersSpec"]["pythonCommand"] == ["/app/nowhere/train.py", "--fast"]


def test_what_the_dry_run_writes_can_be_applied(script: Path) -> None:
    done = submit(script, "--image", "i:1", "--dry-run", "-n", "team")
    first, second = done.stdout.split("---\n")
    assert msgspec.yaml.decode(first)["metadata"]["namespace"] == "team"
    assert msgspec.yaml.decode(second)["kind"] == "ElasticTorchJob"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("-w", "8..2"), "the least, 8, is more than the most, 2: swap them"),
        (("-w", "two"), "'two' is no number of workers: write 2..8, or 4"),
        (("-w", "0"), "0 is no number of workers: write 1 or more"),
        (("-w", "5000"), "a job has 1024 workers at most"),
        (("-w", "2", "--max", "4"), "--min and --max say it, too: leave one away"),
        (("--job", "My_Job"), "'My_Job' cannot be the name of a job"),
        (("--job", "a" * 64), "write at most 63 lower-case letters"),
        (("--env", "A"), "'A' is no pair: write NAME=VALUE"),
        (("--env", "1A=2"), "'1A' is no name of a variable"),
        (("--env", "A=1", "--env", "A=2"), "A is given twice"),
        (("--gpu-share", "50"), "add --gpu-memory, as in 8Gi"),
        (("--gpu-memory", "8Gi", "--gpus", "1"), "leave one away"),
        (("--gpu-memory", "8"), "64Mi is the least: write 8Gi for 8 GiB"),
        (("--gpu-memory", "lots"), "lots"),
        (("--gpus", "0", "--gpu-type", "A100"), "leave one of them out"),
        (("--resource", "nvidia.com/gpu=1"), "has options of its own: --gpus"),
        (("--resource", "memory=4 GB"), "such as 500m or 4Gi"),
        (("--deadline", "soon"), "'soon' is no span of time"),
    ],
)
def test_a_wrong_option_is_named_with_what_to_write_instead(
    script: Path, words: tuple[str, ...], said: str
) -> None:
    assert said in refused(script, "--image", "i:1", *words)


def test_a_script_that_cannot_travel_says_what_to_do(tmp_path: Path) -> None:
    assert "write its command after --, as in -- python gone.py" in refused(
        "gone.py", "--image", "i:1"
    )
    big = tmp_path / "big.py"
    big.write_text("#" * (MOST_BYTES + 1))
    assert "put it into the image, or on a volume" in refused(big, "--image", "i:1")
    odd = tmp_path / "odd name.py"
    odd.write_text("")
    assert "name the file with letters" in refused(odd, "--image", "i:1")
    other = tmp_path / "other.py"
    other.write_bytes(b"\xff\xfe")
    assert "cannot be read" in refused(other, "--image", "i:1")


def test_nothing_to_run_is_told() -> None:
    assert "nothing to run: give a script, or a command after --" in refused(
        "--image", "i:1", "--job", "m"
    )
    assert "without a script NAME.py the job has no name yet" in refused(
        "--image", "i:1", "--", "python"
    )
    assert "/nowhere/train.py is not there, and without a script" in refused(
        "/nowhere/train.py", "--image", "i:1"
    )


def test_a_format_without_a_dry_run_is_refused(script: Path) -> None:
    done = submit(script, "--image", "i:1", "-o", "yaml")
    assert done.exit_code == 2
    assert "it is of --dry-run" in done.stderr
