"""The configuration file: what it means, and what is said about a wrong one."""

from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from alnair.cli import main
from alnair.configuration import scheduler_file as conf
from alnair.configuration.profile_assembly import Assembly, assemble
from alnair.scheduler.engine.engine import Engine
from alnair.scheduler.profiles import profiles, registry
from kit import make
from kit.world import World

MISTAKES = yaml.safe_load((Path(__file__).parent / "mistakes.yaml").read_text())
HEAD = f"apiVersion: {conf.API_VERSION}\nkind: {conf.KIND}\n"


def loaded(folder: Path, text: str) -> Assembly:
    """What a file with this text, after the head, assembles."""
    file = folder / "conf.yaml"
    file.write_text(HEAD + text)
    return assemble(conf.load(file), "conf.yaml")


def refused(folder: Path, text: str) -> list[str]:
    """The problems of a file with this text, after the head; each without the file's name."""
    with pytest.raises(conf.ConfigurationError) as raised:
        loaded(folder, text)
    lines = str(raised.value).splitlines()
    assert all("conf.yaml: " in line for line in lines)
    return [line.partition("conf.yaml: ")[2] for line in lines]


def test_an_empty_file_means_the_built_in_profiles(tmp_path: Path) -> None:
    found = loaded(tmp_path, "").profiles()
    for one, built_in in zip(found, profiles(), strict=True):
        assert one.scheduler == built_in.scheduler
        assert [p.name for p in one.plugins] == [p.name for p in built_in.plugins]
        scores = [p.name for p in built_in.scores]
        assert all(one.weights[name] == built_in.weights.get(name, 1) for name in scores)


def test_the_printed_configuration_says_all_and_means_the_same(tmp_path: Path) -> None:
    assembly = loaded(tmp_path, "seed: 7\n")
    full = conf.Configuration(seed=7, profiles=assembly.explicit())
    file = tmp_path / "full.yaml"
    file.write_text(conf.dump(full))
    again = conf.load(file)
    assert assemble(again, "full").explicit() == full.profiles
    assert conf.dump(again) == file.read_text()
    assert "null" not in file.read_text()


def test_the_built_in_profiles_decide_alike_when_they_are_spelled_out(tmp_path: Path) -> None:
    file = tmp_path / "full.yaml"
    file.write_text(conf.dump(conf.Configuration(profiles=loaded(tmp_path, "").explicit())))
    nodes = [make.node(f"n{i}", gpus=i % 3, cpu=4000 + 1000 * i) for i in range(7)]
    placements = []
    for spelled_out in (True, False):
        world = World(*nodes)
        if spelled_out:
            world.engine = Engine(assemble(conf.load(file), "full").profiles())
        for profile in profiles():
            for i in range(5):
                asked = make.spec(cpu=500, slice_mib=2000 if i % 2 else 0)
                name = f"{profile.scheduler}-{i}"
                world.create(make.pod(name, asked, scheduler=profile.scheduler))
        world.settle(0.0)
        placements.append({p.name: p.node for p in world.pods.values()})
    assert placements[0] == placements[1]


def test_a_profile_starts_from_another_one_and_differs_where_it_says(tmp_path: Path) -> None:
    (profile,) = loaded(
        tmp_path,
        """
profiles:
- schedulerName: mine
  like: alnair-cost-saving
  plugins:
    disabled: [{name: GpuShare}]
    enabled: [{name: TaintToleration, weight: 9}]
  pluginConfig:
  - name: NodeResourcesFit
    args:
      scoringStrategy:
        type: LeastAllocated
        resources: [{name: cpu, weight: 3}]
""",
    ).profiles()
    assert profile.scheduler == "mine"
    assert "GpuShare" not in [p.name for p in profile.plugins]
    assert profile.weights["TaintToleration"] == 9
    fit = next(p for p in profile.plugins if p.name == "NodeResourcesFit")
    assert fit.arguments.scoring_strategy.resources[0].weight == 3


def test_only_the_listed_profiles_are_there(tmp_path: Path) -> None:
    found = loaded(tmp_path, "profiles: [{schedulerName: a}, {schedulerName: b}]").profiles()
    assert [p.scheduler for p in found] == ["a", "b"]


def test_a_patience_that_is_no_duration_is_refused(tmp_path: Path) -> None:
    assert refused(tmp_path, "backfill: {patience: soon}") == [
        "backfill.patience: 'soon' is no duration: write one such as 5m or 90s"
    ]


def test_a_wrong_file_is_refused_with_every_problem_at_once(tmp_path: Path) -> None:
    assert refused(
        tmp_path,
        """
sed: 7
dryRun: "yes"
logging: {format: xml}
serving: {port: 70000}
clientConnection: [1]
profiles:
- schedulerName: a
  plugins: {enabled: [{name: Fit, wait: 3, weight: 500}]}
- plugins: {}
""",
    ) == [
        "sed: there is no such field: did you mean seed?",
        "clientConnection: write fields and values, not a list",
        "serving.port: expected int <= 65535",
        "logging.format: 'xml' is not possible: known: text, json",
        "dryRun: expected bool, got str",
        "profiles[0].plugins.enabled[0].wait: there is no such field: did you mean weight?",
        "profiles[0].plugins.enabled[0].weight: expected int <= 100",
        "profiles[1].schedulerName: is missing: it must be given",
    ]


@pytest.mark.parametrize("case", MISTAKES, ids=lambda case: str(case["problem"]))
def test_each_mistake_is_named_with_its_place_and_what_to_do(
    tmp_path: Path, case: dict[str, str]
) -> None:
    assert refused(tmp_path, case["file"]) == [case["problem"]]


def test_arguments_out_of_range_are_named_with_their_place(tmp_path: Path) -> None:
    (found,) = refused(
        tmp_path,
        "profiles: [{schedulerName: a, pluginConfig: [{name: NodeResourcesFit, args:"
        " {scoringStrategy: {resources: [{name: cpu, weight: 101}]}}}]}]",
    )
    path = "profiles[0].pluginConfig[0].args.scoringStrategy.resources[0].weight: "
    assert found.startswith(path)


def test_two_queue_sorts_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Second:
        name = "Second"

        def key(self, pod: object) -> tuple[float, ...]:
            return ()

    monkeypatch.setattr(
        "alnair.configuration.profile_assembly.registry",
        lambda: {**registry(), "Second": Second},
    )
    (problem,) = refused(
        tmp_path, "profiles: [{schedulerName: a, plugins: {enabled: [{name: Second}]}}]"
    )
    assert problem == (
        "profiles[0].plugins: exactly one plugin must sort the queue, and PrioritySort and Second:"
        " disable PrioritySort"
    )


def test_a_file_of_another_kind_is_refused_as_such(tmp_path: Path) -> None:
    file = tmp_path / "other.yaml"
    file.write_text("apiVersion: kubescheduler.config.k8s.io/v1\nkind: X\nanything: 1\n")
    with pytest.raises(conf.ConfigurationError, match="apiVersion, kind: write scheduler") as said:
        conf.load(file)
    assert len(str(said.value).splitlines()) == 1


def test_a_file_nested_beyond_measure_is_refused_as_any_other(tmp_path: Path) -> None:
    for text in ("[" * 5000, '{"a":' * 3000 + "1" + "}" * 3000):
        file = tmp_path / "deep.yaml"
        file.write_text(text)
        with pytest.raises(conf.ConfigurationError, match="nested too deep"):
            conf.load(file)


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(conf.ConfigurationError, match="cannot be read: No such file"):
        conf.load(tmp_path / "none.yaml")


def run(*arguments: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(main.build(["scheduler"]), ["scheduler", *arguments])
    return result.exit_code, result.stdout, result.stderr


def test_options_override_the_file(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(HEAD + "seed: 7\nserving: {port: 80}\nleaderElection: {identity: x}\n")
    code, shown, _ = run(f"--config={file}", "--print-config", "--port=81", "--lease-duration=30")
    assert code == 0
    printed = yaml.safe_load(shown)
    assert (printed["seed"], printed["serving"]["port"]) == (7, 81)
    assert printed["leaderElection"]["leaseDuration"] == "30s"
    assert printed["leaderElection"]["identity"] == "x"


def test_options_are_checked_together_with_the_file() -> None:
    code, _, said = run("--lease-duration=5", "--validate")
    assert code == 1
    assert said == (
        "error: command line: leaderElection.leaseDuration: must be > renewDeadline > retryPeriod"
        " > 0\n"
    )


def test_only_adds_a_profile_for_pods_that_name_no_scheduler() -> None:
    code, shown, _ = run("--only", "--print-config")
    assert code == 0
    names = [p["schedulerName"] for p in yaml.safe_load(shown)["profiles"]]
    assert names == [*(p.scheduler for p in profiles()), "default-scheduler"]


def test_a_valid_file_is_said_to_be_valid_and_nothing_starts(tmp_path: Path) -> None:
    file = tmp_path / "c.yaml"
    file.write_text(HEAD)
    assert run(f"--config={file}", "--validate") == (0, f"{file} is valid\n", "")
