"""The commands of the local cluster: what they refuse, with which exit code, and their help."""

import ast
import inspect
import json
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner, Result

from alnair.cli import main
from alnair.cli.failures import expected
from alnair.cli.option_groups import OptionGroup, grouped
from alnair.cli.progress import CountDisplay, Display


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the user's clusters."""
    monkeypatch.setenv("ALNAIR_STATE", str(tmp_path / "state"))
    monkeypatch.setenv("ALNAIR_CACHE", str(tmp_path / "cache"))


def run(*arguments: str) -> Result:
    return CliRunner().invoke(main.build(main.wanted(arguments)), list(arguments))


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["up", "--name", "No Good"], "cluster name 'No Good' is not valid: use"),
        (["up", "--nodes", "2", "--gpu-model", "GTX"], "GPU model 'GTX' is not known; known are"),
        (["up", "--components", "etcd,docker"], "there is no component 'docker': choose among"),
        (["up", "--nodes", "-1"], "'-1' is neither a number nor shapes of nodes: write 20"),
        (["up", "--nodes", "2x8xGTX"], "GPU model 'GTX' is not known; known are"),
        (["up", "--nodes", "2x8xA100", "--gpu-model", "T4"], "says the GPUs itself: leave"),
        (["up", "-n", "two"], "No such option: -n"),
        (["check", "-n"], "Option '-n' requires an argument"),
        (["status", "-o", "yaml"], "'yaml' is not one of 'json'"),
        (["kubectl", "--name", "No Good", "get"], "cluster name 'No Good' is not valid"),
        (["up", "--port", "80"], "Invalid value for '--port'"),
        (["up", "--real-gpu-model", "gtx"], "there is no fake GPU 'gtx': choose among a100-80"),
        (["up", "--real-gpus", "17"], "Invalid value for '--real-gpus'"),
        (["status", "--name", "/etc"], "cluster name '/etc' is not valid: use"),
        (["down", "--no-such-flag"], "No such option"),
        (["explain", "pod/"], "'pod/' is no pod: write NAME, pod/NAME, or KIND/NAME"),
        (["explain", "pod/a/b"], "'pod/a/b' is no pod: write NAME, pod/NAME, or KIND/NAME"),
        (["explain", "job", "a", "b"], "'job a b' is no pod: write NAME, pod/NAME, or KIND/NAME"),
        (["explain", "a", "-n", ".."], "'..' is no namespace"),
    ],
)
def test_a_wrong_use_ends_with_2_and_nothing_done(
    arguments: list[str], said: str, tmp_path: Path
) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert said in result.output
    assert list(tmp_path.iterdir()) == []


def test_a_bad_node_list_is_told_with_its_place_before_anything_starts(tmp_path: Path) -> None:
    path = tmp_path / "nodes.csv"
    path.write_text("sn,cpu_milli,memory_mib,gpu,model\nn,1000,1,-2,T4\n")
    result = run("up", "--nodes-from", str(path))
    assert result.exit_code == 1
    assert result.output == (
        f"alnair: {path}, line 2, column 'gpu': -2 is negative: write 0 or more\n"
    )
    assert [one.name for one in tmp_path.iterdir()] == ["nodes.csv"]


def test_a_real_node_without_root_is_refused_before_anything_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(platform, "system", lambda: "Linux")
    result = run("up", "--real-node")
    assert result.exit_code == 1
    assert result.output == (
        "alnair: a real node needs root (containers, namespaces): run the command with sudo\n"
    )
    assert list(tmp_path.iterdir()) == []


def test_the_status_of_a_cluster_that_is_not_there_is_told_with_the_fix() -> None:
    result = run("status", "--name", "two")
    assert result.exit_code == 1
    assert result.output == (
        "alnair: there is no cluster 'two': start it with 'alnair up --name two'\n"
    )


def test_taking_down_what_is_not_there_is_fine_and_told_as_that(tmp_path: Path) -> None:
    result = run("down", "--name", "tow")
    assert result.exit_code == 0
    assert result.output == "there was no cluster tow\n"
    two = tmp_path / "state" / "two"
    two.mkdir(parents=True)
    (two / "state.json").touch()
    assert run("down", "--name", "tow").output == "there was no cluster tow; there is two\n"
    assert run("down", "--name", "two").output == "cluster two is down\n"


@pytest.mark.parametrize("verb", ["up", "status", "down"])
def test_help_has_examples_on_lines_of_their_own(verb: str) -> None:
    output = run(verb, "--help").output
    assert "\n  Examples:\n    alnair " + verb in output


@pytest.mark.parametrize(
    "words", [(), ("agent",), ("scheduler",), ("simulate", "cluster"), ("check",), ("explain",)]
)
def test_help_imports_nothing_slow(words: tuple[str, ...]) -> None:
    arguments = ["alnair", *words, "--help"]
    program = (
        f"import json, sys; from alnair.cli import main; sys.argv = {arguments}\n"
        "try: main.main()\n"
        "except SystemExit: print(json.dumps(sorted(sys.modules)))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    imported = json.loads(result.stdout.splitlines()[-1])
    slow = {"aiohttp", "numpy", "cryptography", "psutil", "yaml", "rich", "jinja2", "asyncio"}
    assert slow.isdisjoint(imported)


class Size(OptionGroup, frozen=True, kw_only=True):
    """How large."""

    height: Annotated[int, typer.Option("--height", min=1, metavar="M", help="In metres.")] = 2
    width: Annotated[float | None, typer.Option("--width", "-w", help="Too.")] = None


class Wide(Size, frozen=True, kw_only=True):
    """How wide, without a short name."""

    width: Annotated[float | None, typer.Option("--width", help="Too.")] = None


def built(kind: type[Size]) -> typer.Typer:
    @grouped
    def build(
        *,
        name: Annotated[str, typer.Argument()],
        size: kind,  # type: ignore[valid-type]
        colour: Annotated[str, typer.Option("--colour")] = "red",
    ) -> None:
        """Build it."""
        typer.echo(f"{name} {size} {colour}")

    app = typer.Typer(rich_markup_mode=None)
    app.command()(build)
    return app


def test_a_group_is_its_options_in_their_place_with_their_defaults_and_limits() -> None:
    app = built(Size)
    done = CliRunner().invoke(app, ["shed", "-w", "2.5", "--colour", "blue"])
    assert done.output == "shed Size(height=2, width=2.5) blue\n"
    assert "Invalid value for '--height'" in CliRunner().invoke(app, ["a", "--height=0"]).output
    shown = CliRunner().invoke(app, ["--help"]).output
    places = [shown.index(text) for text in ("Build it.", "--height M", "--width", "--colour")]
    assert places == sorted(places)
    assert "In metres." in shown


def test_a_group_may_declare_an_option_of_another_group_anew() -> None:
    assert CliRunner().invoke(built(Wide), ["a", "--width", "1"]).exit_code == 0
    assert CliRunner().invoke(built(Wide), ["a", "-w", "1"]).exit_code == 2


def ended(*errors: BaseException, **how: str | int) -> Result:
    app = typer.Typer()

    @app.command()
    def fail() -> None:
        with expected(OSError, LookupError, **how):  # type: ignore[arg-type]
            if len(errors) == 1:
                raise errors[0]
            raise BaseExceptionGroup("some", errors)

    return CliRunner().invoke(app, [])


def test_an_expected_error_is_a_sentence_and_an_exit_code() -> None:
    done = ended(OSError("gone"), code=3, before="not read: ")
    assert (done.exit_code, done.stderr) == (3, "alnair: not read: gone\n")
    done = ended(ValueError("bug"))
    assert isinstance(done.exception, ValueError)


def test_every_line_of_an_error_says_whose_it_is_and_one_without_words_gets_some() -> None:
    assert ended(OSError("a\nb"), prefix="error: ").stderr == "error: a\nerror: b\n"
    assert ended(TimeoutError(), wordless="too late").stderr == "alnair: too late\n"


def test_a_group_of_errors_is_expected_if_all_of_them_are() -> None:
    done = ended(ExceptionGroup("inner", [KeyError("k")]), OSError("o"), code=2)
    assert (done.exit_code, done.stderr) == (2, "alnair: 'k'\n")
    done = ended(OSError("o"), ValueError("bug"))
    assert isinstance(done.exception, ExceptionGroup)


def test_without_a_terminal_progress_is_lines_on_stderr(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with Display() as display:
        display.step("now")
        display.progress("[bold]", 1, 2)
        display.progress("[bold]", 2, 2)
    with CountDisplay("placing", "pods placed", pause=0.0) as count:
        assert count.is_due
        count.show(3, 7, "2 refused")
        count.progress("nodes", 4, 4)
    with CountDisplay("placing", "pods placed", pause=1000.0) as count:
        assert not count.is_due
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err == "now\n[bold]: done\n3 of 7 pods placed; 2 refused\nnodes: done\n"


def verbs() -> Iterator[tuple[str, ...]]:
    """All commands of `alnair`, in words."""

    def inside(group: typer.Typer, *words: str) -> Iterator[tuple[str, ...]]:
        for command in group.registered_commands:
            yield (*words, str(command.name))
        for inner in group.registered_groups:
            assert inner.typer_instance is not None
            yield from inside(inner.typer_instance, *words, str(inner.name))

    return inside(main.build(main.COMMANDS))


def test_what_takes_json_takes_the_words_of_kubectl_for_it_and_n_is_a_namespace() -> None:
    shown = {words: run(*words, "--help").output for words in verbs()}
    for words, text in shown.items():
        as_kubectl = re.search(r"-o, --output (json|<yaml\|json>)", text)
        assert ("--json" in text) == (as_kubectl is not None), words
        assert ("--namespace" in text) == ("-n, --namespace" in text), words
        assert "-n, --name " not in text, words
    assert sum("--json" in text for text in shown.values()) > 10


@pytest.mark.parametrize("flags", [["--json"], ["-o", "json"], ["--output=json"], ["-ojson"]])
def test_every_spelling_of_json_is_the_same(flags: list[str], tmp_path: Path) -> None:
    record = tmp_path / "record.jsonl"
    done = run("report", "scheduling", "--record", str(record), *flags)
    assert done.exit_code == 2
    assert "it records and reports nothing" in done.output


def test_every_verb_has_the_file_of_its_name() -> None:
    folder = Path(inspect.getfile(main)).parent
    for words in verbs():
        if words[:2] == ("agent", "container"):  # its verbs are a line or two each
            words = words[:2]
        path = folder.joinpath(*words).with_suffix(".py")
        if not path.is_file():  # verbs for training jobs have a shelf of their own
            path = folder.joinpath("training", *words).with_suffix(".py")
        assert path.is_file(), path
        names = {n.name for n in ast.parse(path.read_text()).body if isinstance(n, ast.FunctionDef)}
        assert words[-1] in names, path


def test_the_body_of_a_verb_is_short() -> None:
    """Arguments in, text out: what is more than that has a function of its own, or a package."""
    folder = Path(inspect.getfile(main)).parent
    long = {}
    for path in folder.rglob("*.py"):
        for one in ast.walk(ast.parse(path.read_text())):
            if isinstance(one, ast.FunctionDef) and one.body:
                has_doc = len(one.body) > 1 and ast.get_docstring(one) is not None
                lines = one.body[-1].end_lineno - one.body[int(has_doc)].lineno + 1  # type: ignore[operator]
                if lines > 55:
                    long[f"{path.name}:{one.name}"] = lines
    assert not long
