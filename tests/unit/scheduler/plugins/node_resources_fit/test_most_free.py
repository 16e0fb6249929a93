"""The quick answer for parked pods: never a no where a node would do."""

from hypothesis import given
from hypothesis import strategies as st

from alnair.scheduler.engine import events
from alnair.scheduler.engine.engine import Engine
from alnair.scheduler.framework.evaluation import Evaluation
from alnair.scheduler.plugins.node_resources_fit.plugin import FitArguments, NodeResourcesFit
from alnair.scheduler.profiles import profiles
from alnair.scheduler.state.accounts import Accounts
from kit import make

AMOUNTS = st.integers(0, 4)


@given(st.lists(st.tuples(AMOUNTS, AMOUNTS, AMOUNTS), max_size=4), AMOUNTS, AMOUNTS, AMOUNTS)
def test_what_is_called_hopeless_fits_nowhere(
    nodes: list[tuple[int, int, int]], cpu: int, memory: int, widgets: int
) -> None:
    accounts = Accounts()
    for i, (a, b, c) in enumerate(nodes):
        accounts.put_node(make.node(f"n{i}", cpu=a, memory=b, extended={"x.com/w": c}))
    profile = profiles()[0]
    spec = make.spec(cpu=cpu, memory=memory, extended={"x.com/w": widgets})
    evaluation = Evaluation(spec, profile, accounts.cluster)
    evaluation.refresh()
    if NodeResourcesFit().hopeless(spec, accounts.cluster):
        assert evaluation.best() is None
    elif len(nodes) == 1:
        assert evaluation.best() is not None


def test_it_follows_the_books_and_the_nodes() -> None:
    engine = Engine(profiles())
    plugin, cluster = NodeResourcesFit(), engine.view.cluster
    asked = make.spec(cpu=1000)
    assert plugin.hopeless(asked, cluster)
    engine.step([events.NodeChanged(make.node(cpu=1000))], 0.0)
    assert not plugin.hopeless(asked, cluster)
    pod = make.pod(asked=asked)
    engine.step([events.PodChanged(pod)], 1.0)
    assert plugin.hopeless(asked, cluster)
    engine.step([events.PodGone(pod.uid)], 2.0)
    assert not plugin.hopeless(asked, cluster)
    engine.step([events.NodeGone("node")], 3.0)
    assert plugin.hopeless(asked, cluster)


def test_resources_that_are_ignored_do_not_count() -> None:
    accounts = Accounts()
    accounts.put_node(make.node())
    asked = make.spec(extended={"x.com/w": 1})
    assert NodeResourcesFit().hopeless(asked, accounts.cluster)
    lenient = NodeResourcesFit(FitArguments(ignored_resources=("x.com/w",)))
    assert not lenient.hopeless(asked, accounts.cluster)
