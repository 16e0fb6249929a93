"""A diagnosis reads well, and the process serves it."""

from pathlib import Path

import aiohttp
import msgspec

from alnair.cli.text.explanation import render
from alnair.model.nodes import Taint
from alnair.processes.scheduler.endpoints import application
from alnair.processes.scheduler.loop import Decisions
from alnair.scheduler.advice.diagnose import diagnose, find
from alnair.scheduler.advice.diagnosis import (
    Candidate,
    Change,
    Diagnosis,
    GangDiagnosis,
    HeldGpu,
    Placement,
    ScoredNode,
    UnservedName,
)
from alnair.serving.server import Server
from kit import make
from kit.world import World

NONE = "no single change of the pod helps"
GUIDE = Path(__file__).parents[4] / "docs" / "how-to" / "read-why-a-pod-is-pending.md"


def explained(world: World, name: str) -> Diagnosis:
    record = find(world.engine.view, "default", name)
    assert record is not None
    return diagnose(world.engine.view, record, world.now)


def test_a_diagnosis_looks_as_the_guide_says() -> None:
    taint = Taint("gpu", "NoSchedule", "yes")
    nodes = [make.node(f"node-{i}", cpu=cpu) for i, cpu in enumerate((1000, 2000, 3500))]
    world = World(*nodes, make.node("gpu-0", taints=[taint]))
    world.create(*(make.pod(f"p{i}", make.spec(cpu=90_000), priority=i > 5) for i in range(7)))
    world.create(make.pod("trainer", make.spec(cpu=4000)))
    world.settle()
    shown = render(explained(world, "trainer")).splitlines()
    guide = GUIDE.read_text().split("```\n")[2].splitlines()
    for line in shown[:3]:
        assert line in guide
    for line in ("closest nodes:", *shown[-3:]):
        assert line in guide
        assert line in shown
    (head,) = (line for line in shown if line.startswith("refused by"))
    assert head in guide


def test_a_pod_on_a_node_needs_no_explanation() -> None:
    told = Diagnosis("ns/p", "alnair-scheduler", "bound", node="a", since=86400.0)
    assert render(told) == (
        "pod ns/p (alnair-scheduler): it is bound to a since 1970-01-02T00:00:00Z; "
        "nothing is to be explained"
    )


def test_a_pod_on_a_node_tells_what_it_got_and_what_was_next_best() -> None:
    gpus = (
        HeldGpu(0, "GPU-0", "A100", 40960, 100, whole=True),
        HeldGpu(3, "GPU-3", "A100", 4096, 25, whole=False, beside="beside b at 0.9"),
    )
    got = Placement(gpus, decided_again=True, score=90, next=ScoredNode("b", 80), fitting=3)
    told = Diagnosis("ns/p", "alnair-scheduler", "bound", node="a", placement=got)
    assert render(told).splitlines() == [
        "pod ns/p (alnair-scheduler): it is bound to a",
        "  GPU 0 (A100, GPU-0): whole",
        "  GPU 3 (A100, GPU-3): a slice of 4096 MiB and 25 %",
        "    beside b at 0.9",
        "",
        "if it were decided on now, without it on the books (not as it was when it was placed):",
        "  a is the best of the 3 nodes that would take it, score 90",
        "  the next best is b, score 80",
    ]
    for changed, lines in (
        (
            {"next": ScoredNode("b", 90)},
            ["  the next best is b, score 90: the order of ties decides"],
        ),
        ({"next": None, "fitting": 1}, ["  no other node would take it"]),
        ({"better": 1, "score": 70}, ["  it would go to b, score 80"]),
        (
            {"score": None, "why_not": ("no",)},
            ["  a would not take it: no", "  it would go to b, score 80"],
        ),
    ):
        other = msgspec.structs.replace(told, placement=msgspec.structs.replace(got, **changed))
        assert render(other).splitlines()[-len(lines) :] == lines
    foreign = Placement(gpus[:1], guessed=True)
    shown = render(msgspec.structs.replace(told, placement=foreign)).splitlines()
    assert len(shown) == 2
    assert "the pod does not say which" in shown[1]


def test_a_name_that_nobody_serves_is_said_with_those_that_are_served() -> None:
    name = UnservedName(("alnair-cost-saving", "alnair-scheduler"), ("alnair-scheduler",))
    change = Change("scheduler-name", "write spec.schedulerName: alnair-scheduler", "a")
    told = Diagnosis(
        "ns/p", "alnair-schedular", "unserved", message="m", unserved=name, changes=(change,)
    )
    assert render(told).splitlines() == [
        "pod ns/p (alnair-schedular): no scheduler of Alnair serves its scheduler name",
        "  m",
        "",
        "did you mean alnair-scheduler?",
        "the scheduler that leads serves alnair-cost-saving, alnair-scheduler",
        "nothing is seen here of another scheduler named alnair-schedular",
        "",
        "each of these alone lets it fit (decided again with each):",
        "  1. write spec.schedulerName: alnair-scheduler (to a)",
    ]
    alone = msgspec.structs.replace(name, near=(), source="built-in", elsewhere="one is seen")
    shown = render(msgspec.structs.replace(told, unserved=alone)).splitlines()
    who = "no scheduler says what it serves; the built-in profiles are"
    assert shown[3:5] == [f"{who} alnair-cost-saving, alnair-scheduler", "one is seen"]


def test_pairs_and_what_no_node_has_are_shown() -> None:
    world = World(make.node("a", labels={"disk": "ssd"}), make.node("b", labels={"disk": "hdd"}))
    world.create(make.pod("p", make.spec(cpu=16_000, selector={"disk": "sssd", "weather": "fair"})))
    world.create(make.pod("q", make.spec(cpu=16_000, selector={"disk": "sssd"})))
    world.settle()
    shown = render(explained(world, "p")).splitlines()
    at = shown.index("no node has what it requires:")
    assert shown[at + 1 :] == [
        "  spec.nodeSelector: disk=sssd; there are ssd (1), hdd (1)",
        "  spec.nodeSelector: weather=fair; no node has weather",
        "",
        f"{NONE} (5 tried), and no two together (10 looked at)",
    ]
    shown = render(explained(world, "q")).splitlines()
    less = "ask for 8000m of cpu instead of 16000m"
    assert shown[-3:] == [
        f"{NONE} (4 tried), but two together do (decided again with both):",
        f"  1. select disk=ssd instead of disk=sssd; and {less} (to a)",
        f"  2. drop disk=sssd from the node selector; and {less} (to b)",
    ]


def test_a_gang_tells_how_much_of_it_fits() -> None:
    world = World(make.node("a", cpu=1000))
    world.declare(make.gang("g", 3))
    world.create(*make.members("g", 3, make.spec(cpu=900)))
    world.settle(0.5)
    lines = render(explained(world, "g-2")).splitlines()
    assert "gang default/g: 0 of 3 pods run or are on their way, 3 exist" in lines
    text = "  1 of the 3 that must start together fit now; the first that does not is g-1"
    assert text in lines


def test_the_pods_of_a_gang_that_is_not_there_are_counted() -> None:
    for pods, words in ((1, "1 pod names it"), (2, "2 pods name it")):
        gang = GangDiagnosis("default/g", False, 0, pods, 0, 0, 0, "")
        shown = render(Diagnosis("default/g-0", "alnair-scheduler", "waiting", gang=gang))
        assert f"gang default/g: its PodGroup does not exist; {words}" in shown.splitlines()
        assert "change" not in shown  # of the pod: none was tried, and its label may be wrong


def test_a_gang_that_only_lacks_pods_is_refused_by_no_node() -> None:
    world = World(make.node("a", gpus=2), make.node("b", gpus=2))
    world.declare(make.gang("g", 4))
    world.create(*make.members("g", 3, make.spec(whole=1)))
    world.settle(0.5)
    assert render(explained(world, "g-0")).splitlines()[:6] == [
        "pod default/g-0 (alnair-scheduler): its gang is not complete",
        "  gang default/g: 1 more pod to be created",
        "  It waits for gang default/g: 1 more pod to be created.",
        "",
        "gang default/g: 0 of 4 pods run or are on their way, 3 exist",
        "  3 of the 4 that must start together fit now",
    ]
    assert "refused by" not in render(explained(world, "g-0"))


async def test_the_process_serves_it_by_namespace_and_name() -> None:
    told = Diagnosis("ns/p", "alnair-scheduler", "gated")

    def explain(namespace: str, name: str) -> Diagnosis | None:
        return told if (namespace, name) == ("ns", "p") else None

    app = application(Decisions(), lambda: True, explain=explain)
    standby = application(Decisions(), lambda: True)
    async with (
        Server(app, "127.0.0.1", 0) as server,
        Server(standby, "127.0.0.1", 0) as other,
        aiohttp.ClientSession() as session,
    ):
        answers = {}
        for url, pod in (
            (server.url, "ns/p"),
            (server.url, "ns/q"),
            (server.url, "p"),
            (other.url, "ns/p"),
        ):
            async with session.get(f"{url}/debug/explain", params={"pod": pod}) as answer:
                answers[url, pod] = answer.status
                if answer.status == 200:
                    body = await answer.read()
                    assert msgspec.json.decode(body, type=Diagnosis) == told
    assert list(answers.values()) == [200, 404, 400, 503]


def test_nodes_that_refuse_nothing_are_not_listed_as_close() -> None:
    """As where a quota is used up: they would take the pod."""
    quota = "ElasticQuota qa/q: nvidia.com/gpu 8 used and 1 asked is more than max 8"
    free, full = Candidate("a", (), {}), Candidate("b", ("Too many pods",), {"pods": 1})
    told = Diagnosis("qa/p", "alnair-scheduler", "waiting", message=quota, closest=(free,))
    assert "no node refuses it by itself" in render(told).splitlines()
    assert "closest nodes" not in render(told)
    shown = render(msgspec.structs.replace(told, closest=(free, full)))
    assert "closest nodes:\n  b: Too many pods (missing: 1 of pods)\n" in shown
    assert "  a:" not in shown
