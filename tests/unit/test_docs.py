"""The documentation says what is true: links lead somewhere, examples hold, nothing is missing."""

import importlib
import re
import runpy
import shlex
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any, get_args, get_origin

import msgspec
import pytest
import typer
import yaml
from typer.testing import CliRunner

from alnair.checker import registry
from alnair.checker.cluster import Finding
from alnair.checker.violation import Violation
from alnair.cli import main
from alnair.configuration import scheduler_file, strict_yaml
from alnair.configuration.profile_assembly import assemble
from alnair.kube.crds import our_crds
from alnair.kube.objects import wire
from alnair.kube.objects.device_claims import device_claims_problem
from alnair.kube.objects.pod_spec_projection import pod_spec
from alnair.live.replay.report import ReplayReport
from alnair.local.installation import documents
from alnair.model import api_types, names
from alnair.model.gpu_demand import ContainerGpus, gpu_demand
from alnair.model.nodes import Gpu, Node
from alnair.model.workload import Pod, PodSpec
from alnair.scheduler import profiles
from alnair.scheduler.engine import events
from alnair.scheduler.engine.engine import Engine
from alnair.scheduler.framework.evaluation import Evaluation
from alnair.scheduler.framework.extension_points import Profile
from alnair.scheduler.state.accounts import Accounts
from alnair.testing import PluginBench, node, pod

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = [*ROOT.glob("*.md"), *DOCS.rglob("*.md")]
NODE = Node("gpus", {"cpu": 8000, names.GPU: 1}, gpus=(Gpu("GPU-0", 0, "A100", 81920),))

pages = pytest.mark.parametrize("page", PAGES, ids=lambda p: str(p.relative_to(ROOT)))


def blocks(page: Path, language: str) -> list[str]:
    """The fenced blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", page.read_text(), re.MULTILINE | re.DOTALL)


def anchors(page: Path) -> set[str]:
    """What the headings of a page can be linked by, as GitHub makes it."""
    heads = re.findall(r"^#+ (.+)$", page.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", head.lower()).strip().replace(" ", "-") for head in heads}


def commands(page: Path) -> Iterator[list[str]]:
    """The commands of the page's shell blocks, in words."""
    for block in blocks(page, "sh"):
        without_files = re.sub(r"<<'(\w+)'\n.*?^\1$", "", block, flags=re.DOTALL | re.MULTILINE)
        for line in without_files.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            while words and re.fullmatch(r"[A-Z_]+=.*", words[0]):
                words.pop(0)
            if words:
                yield words


@pages
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    text = re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in target:
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        assert there.exists(), target
        if anchor:
            assert anchor in anchors(there), target


@pages
def test_every_yaml_example_is_what_the_scheduler_would_accept(page: Path) -> None:
    files = re.findall(r"<<'YAML'\n(.*?)^YAML$", page.read_text(), re.MULTILINE | re.DOTALL)
    for text in [*blocks(page, "yaml"), *files]:
        for document in yaml.safe_load_all(text):
            kind = document.get("kind")
            if kind == scheduler_file.KIND:
                wanted = strict_yaml.read(document, scheduler_file.Configuration)
                assert assemble(wanted, page.name).profiles()
                continue
            template = document if kind == "Pod" else document.get("spec", {}).get("template")
            if template:
                pod = msgspec.convert({"metadata": {}, **template}, wire.PodWire, strict=False)
                spec = pod_spec(pod.spec, pod.metadata.annotations or {})
                assert pod.spec.scheduler_name in {p.scheduler for p in profiles.profiles()}
                assert spec.gpu is not None
                assert not spec.gpu.problem
            elif kind == "PodGroup":
                assert msgspec.convert(document["spec"], api_types.PodGroupSpec).min_member > 1


def test_every_json_example_of_the_names_follows_its_type() -> None:
    documents = blocks(DOCS / "reference" / "names.md", "json")
    static, load, use, workload, of_job, expected, assignment, plan, holdings = documents
    assert msgspec.json.decode(of_job, type=api_types.JobWorkload).v == 1
    assert msgspec.json.decode(holdings, type=api_types.Holdings).v == 1
    assert msgspec.json.decode(workload, type=api_types.Workload).v == 1
    assert msgspec.json.decode(static, type=api_types.GpuStatic).v == 1
    assert msgspec.json.decode(load, type=api_types.GpuLoadAnnotation).v == 1
    assert msgspec.json.decode(use, type=api_types.PodUtilization).v == 1
    assert msgspec.json.decode(expected, type=api_types.Expected).v == 1
    assert msgspec.json.decode(assignment, type=api_types.GpuAssignment).v == 1
    assert msgspec.json.decode(plan, type=api_types.GangPlan).v == 1


def test_the_page_of_names_has_them_all() -> None:
    text = (DOCS / "reference" / "names.md").read_text()
    found = [v for k, v in vars(names).items() if k.isupper() and k[0] != "_"]
    values = [v for v in found if not isinstance(v, frozenset | tuple)]
    assert not [value for value in values if str(value) not in text]


def test_the_page_of_custom_resources_has_them_all() -> None:
    text = (DOCS / "reference" / "custom-resources.md").read_text()
    for d in our_crds.DEFINITIONS:
        assert f"| {d.kind} | `{d.group}/{d.version}` |" in text


def test_the_page_of_custom_resources_says_what_is_installed() -> None:
    text = (DOCS / "reference" / "custom-resources.md").read_text()
    rows = re.findall(r"^\| (\w+) \| `(\S+)` \| `\S+` \| (.+?) \|", text, re.MULTILINE)
    assert len(rows) == len(our_crds.DEFINITIONS)
    said = {(kind, group) for kind, group, installed in rows if installed == "installs it"}
    assert {installed for _, _, installed in rows} == {"installs it", "leaves it out"}
    specs = [d["spec"] for d in documents() if d["kind"] == "CustomResourceDefinition"]
    versions = [(s, v["name"]) for s in specs for v in s["versions"]]
    assert said == {(s["names"]["kind"], f"{s['group']}/{version}") for s, version in versions}


def test_the_page_of_admission_has_all_policies() -> None:
    text = (DOCS / "reference" / "admission.md").read_text()
    policies = [d["metadata"]["name"] for d in documents() if d["kind"].endswith("AdmissionPolicy")]
    assert sorted(re.findall(r"^\| `([\w.-]+)` \|", text, re.MULTILINE)) == sorted(policies)


def test_the_page_of_the_scheduler_has_all_plugins_in_their_order_with_their_weights() -> None:
    text = (DOCS / "reference" / "scheduler.md").read_text()
    rows = re.findall(r"^\| `(\w+)` \| [^|]*\| [^|]* \| (\d*) ?\|$", text, re.MULTILINE)
    assert [name for name, _ in rows] == list(profiles.registry())
    assert {name: int(weight) for name, weight in rows if weight} == profiles.WEIGHTS


def test_the_page_of_the_agents_metrics_has_them_all() -> None:
    folder = ROOT / "src/alnair/processes/agent"
    code = "".join(path.read_text() for path in folder.rglob("*metrics.py"))
    text = (DOCS / "reference" / "metrics-of-the-agent.md").read_text()
    rows = re.findall(r"^\| `(alnair_\w+)` \|", text, re.MULTILINE)
    assert sorted(rows) == sorted(set(re.findall(r'"(alnair_\w+)"', code)))


def test_the_page_of_the_checker_has_all_rules_in_their_order() -> None:
    text = (DOCS / "reference" / "checker-rules.md").read_text()
    rules = (
        registry.NODE_RULES,
        registry.POD_RULES,
        registry.GANG_RULES,
        registry.CLUSTER_RULES,
        registry.WATCH_RULES,
    )
    assert re.findall(r"^\| `([\w-]+)` \|", text, re.MULTILINE) == [r for g in rules for r in g]


def test_the_result_of_a_check_looks_as_the_guide_says() -> None:
    (text,) = blocks(DOCS / "how-to" / "check-a-cluster.md", "json")
    shown = msgspec.json.decode(text)
    assert list(shown) == ["ok", *Finding.__struct_fields__]
    assert list(shown["violations"][0]) == list(Violation.__struct_fields__)
    msgspec.convert(shown, Finding)


def test_the_report_of_a_replay_looks_as_the_guide_says() -> None:
    (text,) = blocks(DOCS / "how-to" / "replay-your-own-trace.md", "json")
    assert list(msgspec.json.decode(text)) == list(ReplayReport.__struct_fields__)
    msgspec.json.decode(text, type=ReplayReport)


@pages
def test_every_command_and_option_in_an_example_exists(page: Path) -> None:
    for words in commands(page):
        program, *rest = [Path(words[0]).name, *words[1:]]
        if program == "alnair" and rest:
            assert rest[0] in main.COMMANDS, words
            shown = _help(*rest)
            options = {word.partition("=")[0] for word in rest if word.startswith("--")}
            assert not [o for o in options if shown and not re.search(rf"{o}\b", shown)], words
        if program == "python" and rest[0].startswith("benchmarks/"):
            script = ROOT / rest[0]
            assert script.is_file(), words
            options = [word for word in rest if word.startswith("--")]
            assert not [o for o in options if f'"{o}"' not in script.read_text()], words
        if program == "make":
            makefile = (ROOT / "Makefile").read_text()
            targets = [word for word in rest if "=" not in word]
            assert not [t for t in targets if f".PHONY: {t}\n" not in makefile], words


def _help(verb: str, *words: str) -> str:
    """The help of a verb, or of the verb within it that the words begin with."""
    app = main.build([verb])
    path, inside = [verb], _inside(app)[verb]
    for word in words:
        if word not in inside:
            break
        path.append(word)
        inside = inside[word]
    return CliRunner().invoke(app, [*path, "--help"]).output


def _inside(group: typer.Typer) -> dict[str, Any]:
    """The verbs of a group, with theirs."""
    groups = {
        g.name: _inside(g.typer_instance) for g in group.registered_groups if g.typer_instance
    }
    commands = {str(c.name): {} for c in group.registered_commands}
    return {str(name): inner for name, inner in groups.items()} | commands


@pytest.mark.parametrize(
    ("case", "resources", "annotations"),
    [
        ("130 %", {names.VGPU_MEMORY: 8192, names.VGPU_COMPUTE: 130}, {}),
        ("8 MiB", {names.VGPU_MEMORY: 8}, {}),
        ("no memory", {names.VGPU_COMPUTE: 50}, {}),
        ("both", {names.GPU: 1, names.VGPU_MEMORY: 8192}, {}),
        ("model, no GPU", {}, {names.GPU_MODELS: "A100"}),
        ("refused model, no GPU", {}, {names.GPU_MODELS_NOT: "A100"}),
        ("no refused model", {names.GPU: 1}, {names.GPU_MODELS_NOT: ","}),
        (
            "model in both",
            {names.GPU: 1},
            {names.GPU_MODELS: "A100,T4", names.GPU_MODELS_NOT: "A100"},
        ),
        ("no weight", {names.GPU: 1}, {names.GPU_MODEL_WEIGHTS: "H100"}),
        ("two weights", {names.GPU: 1}, {names.GPU_MODEL_WEIGHTS: "T4=1,T4=2"}),
        ("policy", {names.GPU: 1}, {names.VGPU_POLICY: "strict"}),
        ("memory", {names.VGPU_MEMORY: 64}, {names.VGPU_MEMORY_POLICY: "hard"}),
        (
            "host memory",
            {names.VGPU_MEMORY: 64},
            {names.VGPU_MEMORY_POLICY: "swap", names.VGPU_HOST_MEMORY: "8Gi"},
        ),
        ("host memory alone", {names.VGPU_MEMORY: 64}, {names.VGPU_HOST_MEMORY: "64"}),
        ("no slice", {names.GPU: 1}, {names.VGPU_MEMORY_POLICY: "swap"}),
    ],
)
def test_the_refusals_read_as_the_page_says(
    case: str, resources: dict[str, int], annotations: dict[str, str]
) -> None:
    demand = gpu_demand([ContainerGpus("main", resources)], annotations)
    assert demand is not None
    assert f"| {demand.problem} |" in (DOCS / "reference" / "gpu-requests.md").read_text(), case


def test_the_refusal_of_claims_for_devices_reads_as_the_page_says() -> None:
    spec = wire.PodSpecWire(resource_claims=[wire.ResourceClaimWire("gpu")])
    text = (DOCS / "reference" / "gpu-requests.md").read_text()
    assert f"| {device_claims_problem(spec)} |" in text


def test_the_refusal_of_containers_that_exceed_their_gpu_reads_as_the_page_says() -> None:
    slice_of = {names.VGPU_MEMORY: 8192, names.VGPU_COMPUTE: 60}
    demand = gpu_demand([ContainerGpus("a", slice_of), ContainerGpus("b", slice_of)], {})
    assert demand is not None
    assert f"| {demand.problem} |" in (DOCS / "reference" / "gpu-requests.md").read_text()


def guide(number: int) -> ModuleType:
    """What a block of the guide to plugins defines."""
    module = ModuleType("guide")
    code = blocks(DOCS / "how-to" / "write-a-plugin.md", "python")[number]
    exec(compile(code, "write-a-plugin.md", "exec"), module.__dict__)
    return module


def test_the_observing_plugin_of_the_guide_works() -> None:
    module = guide(1)
    profile = Profile("guide", [module.StableNodes(), profiles.registry()["PrioritySort"]()])
    engine, again = Engine([profile]), Engine([profile])
    there = [events.NodeChanged(NODE), events.NodeChanged(Node("spot", {"cpu": 8000}))]
    engine.learn([*there, events.NodeGone("spot"), there[1]], 0.0)
    again.learn([*there, events.PluginStates(engine.view.plugin_states())], 0.0)
    for one in (engine, again):
        cluster = one.view.cluster
        scores = profile.scores[0].score(PodSpec(), cluster)(slice(0, 2))
        assert scores[cluster.columns.row_of["spot"]] == 50
        assert scores[cluster.columns.row_of["gpus"]] == 100
    bench = PluginBench(module.StableNodes(), [node("a"), node("b")])
    bench.check([pod("p")])


def test_the_plugin_of_the_guide_works() -> None:
    module = guide(0)
    accounts = Accounts()
    accounts.put_node(NODE)
    accounts.put_node(Node("cpus", {"cpu": 8000}))
    spec = PodSpec(requests=(("cpu", 100),))
    profile = Profile("guide", [module.AvoidGpuNodes(), profiles.registry()["PrioritySort"]()])
    evaluation = Evaluation(spec, profile, accounts.cluster)
    evaluation.refresh()
    best = evaluation.best()
    assert best == accounts.columns.row_of["cpus"]
    assert profile.sorts[0].key(Pod("u", "ns", "p", spec, "guide", created=1.0))


def test_the_index_names_every_page() -> None:
    index = (DOCS / "README.md").read_text()
    decisions = (DOCS / "decisions" / "README.md").read_text()
    for page in DOCS.rglob("*.md"):
        if page.name != "README.md":
            assert page.relative_to(DOCS).as_posix() in index or f"({page.name})" in decisions


def test_every_path_in_the_glossary_exists() -> None:
    rows = [line.split(" | ") for line in (DOCS / "concepts/glossary.md").read_text().splitlines()]
    places = [path for row in rows if len(row) == 4 for path in re.findall(r"`([^`]+)`", row[2])]
    paths = [path for path in places if "/" in path and not path.startswith("alnair/")]
    paths += [path for path in places if path in {"checker", "traces", "native"}]
    bases = {path: ROOT if path.startswith("native") else ROOT / "src/alnair" for path in paths}
    assert len(bases) > 40
    assert [path for path, base in bases.items() if not (base / path).exists()] == []


def test_what_is_generated_is_generated_anew_after_every_change(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All but what Helm renders: tests/integration/chart."""
    monkeypatch.syspath_prepend(DOCS)
    generate = importlib.import_module("generate")
    files = {
        generate.PAGE: generate.page(),
        **generate.doctor(),
        **generate.crds(),
        **generate.chart(),
    }
    stale = [str(file) for file, text in files.items() if file.read_text() != text]
    assert stale == [], "run make generate, and commit what it writes"


def test_the_page_of_the_configuration_has_every_field() -> None:
    text = (DOCS / "reference" / "scheduler-configuration.md").read_text()
    rows = re.findall(r"^\| `([\w.\[\]]+)` \|", text, re.MULTILINE)
    profile = set(_fields(scheduler_file.ProfileConfiguration))
    assert set(_fields(scheduler_file.Configuration)) | profile <= set(rows)


def _fields(kind: type[msgspec.Struct]) -> Iterator[str]:
    """The paths of a struct's fields, with those of structs within and of items of lists."""
    for field in msgspec.structs.fields(kind):
        name, inner = field.encode_name, field.type
        if get_origin(inner) is tuple:
            name, inner = f"{name}[]", get_args(inner)[0]
        if isinstance(inner, type) and issubclass(inner, msgspec.Struct):
            yield from (f"{name}.{below}" for below in _fields(inner))
        else:
            yield name


def test_the_page_of_the_configuration_has_every_argument_of_every_plugin() -> None:
    page = DOCS / "reference" / "scheduler-configuration.md"
    text = page.read_text().partition("## Arguments")[2]
    rows = re.findall(r"^\| `(\w+)` \| `([\w.\[\]]+)` \|", text, re.MULTILINE)
    listed = {(plugin, re.split(r"[.\[]", argument)[0]) for plugin, argument in rows}
    there = {
        (name, field)
        for name, plugin in profiles.registry().items()
        for field in getattr(getattr(plugin, "Args", None), "__struct_encode_fields__", ())
    }
    assert listed == there, "docs/reference/scheduler-configuration.md, Arguments of plugins"


def test_the_plugin_of_the_tutorial_is_that_of_the_example_and_passes_its_bench() -> None:
    page = DOCS / "tutorials" / "first-plugin.md"
    example = ROOT / "examples" / "02-first-plugin" / "src" / "gpu_driver" / "__init__.py"
    code = {line.strip() for line in example.read_text().splitlines()}
    *shown, bench = blocks(page, "python")
    assert not [line for block in shown for line in block.splitlines() if line.strip() not in code]
    namespace = runpy.run_path(str(example))
    exec(compile(bench, page.name, "exec"), namespace)
