"""`alnair simulate placement` as a user calls it: what it writes, and what it refuses."""

import json
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from typer.testing import CliRunner, Result

from alnair.cli import main
from alnair.sim.placement import result as placement_result

NODES = "sn,cpu_milli,memory_mib,gpu,model\na,8000,4096,2,T4\nb,8000,4096,2,G2\n"
PODS = "name,cpu_milli,memory_mib,num_gpu,gpu_milli,gpu_spec\n"
PLAIN = "name,cpu_milli,memory_mib,num_gpu,gpu_milli\n"
Run = Callable[..., Result]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def command(*options: str, nodes: str = NODES, pods: str = PODS, **files: str) -> Result:
        for name, text in {"nodes": nodes, "pods": pods, **files}.items():
            (tmp_path / f"{name}.csv").write_text(text)
        lists = [f"--{what}={tmp_path / what}.csv" for what in ("nodes", "pods")]
        placed = [str(tmp_path / o) if o.endswith(".csv") else o for o in options]
        return CliRunner().invoke(
            main.build(["simulate"]), ["simulate", "placement", *lists, *placed]
        )

    return command


def last(result: Result) -> placement_result.Result:
    assert result.exit_code == 0, result.output
    return msgspec.json.decode(result.stdout.splitlines()[-1], type=placement_result.Result)


def test_a_list_without_gpu_spec_and_one_with_a_model_named_twice_are_read(run: Run) -> None:
    plain = run("--policy=firstfit", "--tune=0.5", "--json", pods=PLAIN + "p,1000,1,1,1000\n")
    named = run("--policy=firstfit", "--json", pods=PODS + "p,1000,1,1,1000,T4|T4|G2\n")
    assert last(plain).failed_pods == 0
    assert last(named).pods >= 4


def test_pods_larger_than_any_node_fail_and_the_others_are_placed(run: Run) -> None:
    orders = {"pod_order": "big\nsmall\n", "node_order": "a\nb\n"}
    pods = PODS + "big,9000,1,1,1000,\nsmall,1000,1,1,500,\n"
    found = last(run("--orders", "pod_order.csv", "node_order.csv", "--json", pods=pods, **orders))
    assert (found.pods, found.failed_pods, found.seed) == (2, 1, None)
    assert found.policy == "alnair-scheduler"
    assert found.unallocated_pct_at_130 is None


def test_the_same_seed_gives_the_same_decisions_and_another_seed_others(run: Run) -> None:
    pods = PODS + "".join(f"p{i},100,1,1,{i + 50},\n" for i in range(40))
    first, again, other = (
        last(run(f"--seed={s}", "--policy=random", "--json", pods=pods)).digest for s in (1, 1, 2)
    )
    assert first == again != other


@pytest.mark.parametrize(
    ("files", "said"),
    [
        (
            {"pods": PODS + "p,-1,1,1,500,\n"},
            "pods.csv, line 2, column 'cpu_milli': -1 is",
        ),
        ({"pods": PODS + "p,1,1,1,1001,\n"}, "line 2, column 'gpu_milli': asks for 100.1 %"),
        ({"pods": PODS + "p,1,1,1,500,H9\n"}, "line 2, column 'gpu_spec': GPU model 'H9'"),
        ({"pods": "name,cpu_milli\np,1\n"}, "line 1, column 'num_gpu': the column is missing"),
        ({"nodes": NODES + "a,1,1,0,\n"}, "nodes.csv, line 4, column 'sn': 'a' is on line 2"),
    ],
)
def test_a_wrong_list_is_refused_with_file_line_and_column(
    run: Run, files: dict[str, str], said: str
) -> None:
    result = run(**files)
    assert result.exit_code == 2
    assert said in result.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--orders", "o.csv", "o.csv", "--seed=1"), "leave --seed and --tune away"),
        (("--policy=fgd", "--profile=alnair-scheduler"), "leave --profile and --config away"),
        (("--policy=best",), "'best' is not a policy; known are"),
        (("--profile=best",), "there is no profile 'best'; known are alnair-scheduler"),
        (("--orders", "o.csv", "o.csv"), "o.csv, line 1: 'q' is not in the pod list"),
        (("--config", "c.csv"), "c.csv: apiVersion, kind: write"),
    ],
)
def test_wrong_usage_is_refused(run: Run, options: tuple[str, ...], said: str) -> None:
    result = run(*options, pods=PODS + "p,1000,1,1,500,\n", o="q\n", c="kind: Pod\n")
    assert result.exit_code == 2
    assert said in " ".join(result.stderr.replace("│", " ").split())


def test_the_result_looks_as_the_guide_says() -> None:
    page = Path(__file__).resolve().parents[4] / "docs" / "how-to" / "simulate-placements.md"
    shown = page.read_text().split("```json\n")[1].split("\n```")[0]
    assert list(json.loads(shown)) == list(placement_result.Result.__struct_fields__)
    msgspec.json.decode(shown, type=placement_result.Result)


def test_a_report_says_what_was_left_at_each_percentage_and_takes_no_other_folder(
    run: Run, tmp_path: Path
) -> None:
    pods = PODS + "".join(f"p{i},100,1,1,{i + 50},\n" for i in range(40))
    folder = tmp_path / "out"
    found = last(run("--policy=firstfit", "--json", f"--report={folder}", pods=pods))
    lines = (folder / "levels.csv").read_text().splitlines()
    assert lines[0] == "arrived_pct,unallocated_pct,frag_pct,failed"
    by_percent = {line.split(",")[0]: float(line.split(",")[1]) for line in lines[1:]}
    assert by_percent["100"] == found.unallocated_pct_at_100
    summary = json.loads((folder / "summary.json").read_text())
    assert (summary["format"], summary["digest"]) == ("alnair-report", found.digest)
    assert "firstfit on " in (folder / "index.html").read_text()
    assert (folder / "course.svg").exists()

    other = tmp_path / "other"
    other.mkdir()
    (other / "mine").write_text("kept")
    refused = run("--policy=firstfit", f"--report={other}", pods=pods)
    assert refused.exit_code == 2
    assert "something else than a report" in refused.output
    assert [path.name for path in other.iterdir()] == ["mine"]
