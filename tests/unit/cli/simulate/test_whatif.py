"""`alnair simulate whatif` as a command: its files, its exit codes, its words."""

import gzip
import json
import re
import shlex
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from alnair.cli import main
from alnair.sim.whatif.answer import Answer, PodResult
from alnair.sim.whatif.figures import Figures
from kit import whatif_guide

GUIDE = Path(__file__).resolve().parents[4] / "docs" / "how-to" / "ask-what-if.md"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with the guide's files."""
    whatif_guide.save(tmp_path / "now.json.gz")
    (tmp_path / "train.yaml").write_text(whatif_guide.TRAIN)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def whatif(*arguments: str) -> Result:
    return CliRunner().invoke(main.build(["simulate"]), ["simulate", "whatif", *arguments])


def asked(*arguments: str) -> Result:
    return whatif("--snapshot", "now.json.gz", *arguments)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ("--submit train.yaml", 0),
        ("--submit train.yaml --horizon 1h", 1),
        ("--submit train.yaml --add-nodes 2x8xH100", 0),
        ("--drain gpu-4", 0),
        ("--drain gpu-6", 1),
        ("--cordon gpu-6", 0),
        ("--free-gpus 8", 0),
        ("--free-gpus 8 --max-moves 0", 1),
        ("--free-gpus 8 --drain gpu-3", 0),
    ],
)
def test_the_exit_code_says_whether_all_can_be_had(folder: Path, arguments: str, code: int) -> None:
    done = asked(*arguments.split(), "--json")
    assert done.exit_code == code, done.output
    answer = json.loads(done.stdout.splitlines()[-1])
    assert answer["satisfied"] == (code == 0)
    assert list(answer) == ["satisfied", *Answer.__struct_fields__]
    assert list(answer["before"]) == list(Figures.__struct_fields__)
    assert all(list(fate) == list(PodResult.__struct_fields__) for fate in answer["fates"])


def test_the_same_question_has_the_same_answer_to_the_last_byte(folder: Path) -> None:
    arguments = ("--submit", "train.yaml", "--count", "3", "--drain", "gpu-4", "--free-gpus", "8")
    assert asked(*arguments, "--json").output == asked(*arguments, "--json").output


def test_the_guide_shows_what_the_command_says(folder: Path) -> None:
    shown = re.findall(
        r"^```sh\nalnair (simulate whatif --snapshot .*?)\n```\n\n```\n(.*?)^```$",
        GUIDE.read_text(),
        re.MULTILINE | re.DOTALL,
    )
    assert len(shown) >= 4
    for command, output in shown:
        arguments = shlex.split(command.replace("\\\n", " "))
        done = CliRunner().invoke(main.build(["simulate"]), arguments)
        assert done.stdout == output, command


def test_a_node_list_may_be_a_file_of_manifests(folder: Path) -> None:
    node = {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": "more"},
        "status": {"allocatable": {"cpu": "8", "nvidia.com/gpu": "8", "pods": "10"}},
    }
    (folder / "nodes.json").write_text(json.dumps(node))
    done = asked("--add-nodes", "nodes.json", "--json")
    assert done.exit_code == 0
    assert json.loads(done.stdout)["after"]["gpus"] == 56


def test_what_places_nothing_is_left_out_and_named(folder: Path) -> None:
    (folder / "web.yaml").write_text("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web}\n")
    done = asked("--submit", "web.yaml", "--submit", "train.yaml")
    assert "note: objects that scheduling does not depend on" in done.stderr
    assert "ConfigMap (1)" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("--drain gpu-4", "give either --from-cluster or --snapshot"),
        ("--snapshot now.json.gz --from-cluster --drain a", "give either"),
        ("--snapshot now.json.gz", "what if what?"),
        ("--snapshot now.json.gz --max-moves 3 --drain a", "Give --free-gpus"),
        ("--snapshot now.json.gz --config c.yaml --drain a", "leave --config away"),
        ("--snapshot now.json.gz --drain a --horizon 24", "as in 24h"),
        ("--snapshot now.json.gz --drain gpu-44", "did you mean gpu-4?"),
        ("--snapshot now.json.gz --add-nodes 4x8", "is no shape of nodes"),
        ("--snapshot now.json.gz --add-nodes none.yaml", "or a file of Node manifests"),
        ("--snapshot now.json.gz --submit none.yaml", "none.yaml cannot be read: No such file"),
        ("--snapshot now.json.gz --submit broken.yaml", "broken.yaml, line 2: column 1: this"),
        ("--snapshot now.json.gz --submit now.json.gz", "this is not text"),
        ("--snapshot none.gz --drain gpu-4", "none.gz cannot be read: No such file"),
        ("--snapshot train.yaml --drain gpu-4", "is no snapshot of a scheduler"),
        ("--snapshot cut.gz --drain gpu-4", "is no snapshot of a scheduler"),
        ("--snapshot odd.gz --drain gpu-4", "is a damaged snapshot"),
        ("--snapshot next.gz --drain gpu-4", "is a snapshot of version 99"),
    ],
)
def test_what_cannot_be_used_is_refused(folder: Path, arguments: str, says: str) -> None:
    whole = (folder / "now.json.gz").read_bytes()
    text = gzip.decompress(whole)
    (folder / "broken.yaml").write_text("kind: {\n")
    (folder / "cut.gz").write_bytes(whole[:-40])
    for name, old, new in (
        ("odd.gz", b'"namespace":"', b'"namespace":3,"was":"'),
        ("next.gz", b'"version":1', b'"version":99'),
    ):
        (folder / name).write_bytes(gzip.compress(text.replace(old, new, 1), mtime=0))
    done = whatif(*arguments.split())
    assert done.exit_code == 2, done.output
    assert says in re.sub(r"\s+", " ", done.stderr.replace("│", ""))


def test_a_cluster_that_is_not_there_is_said_to_be_unreadable(folder: Path) -> None:
    (folder / "config").write_text("{}")
    done = whatif("--from-cluster", "--kubeconfig", "config", "--drain", "a")
    assert done.exit_code == 3
    assert "the cluster cannot be read" in done.stderr
