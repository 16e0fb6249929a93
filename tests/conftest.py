"""What holds for all tests: their order, stages end the run when they fail, no deadlines."""

import logging
from collections.abc import Iterator

import hypothesis
import pytest

from kit.soak import cases
from lanes import lane, place, stage

#: Examples of each random test.
EXAMPLES = len(cases(60))
# How long an example takes says more of the machine than of the code.
hypothesis.settings.register_profile("alnair", deadline=None, max_examples=EXAMPLES)
hypothesis.settings.load_profile("alnair")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keeps together what shares a cluster."""
    parallel = hasattr(config, "workerinput")
    items.sort(key=lambda item: place(item.nodeid, parallel=parallel))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Gives whole lanes to processes, in their order."""
    from xdist.scheduler import LoadScopeScheduling

    class Lanes(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            return lane(nodeid)

    config.option.loadscopereorder = False
    return Lanes(config, log)


@pytest.fixture(autouse=True)
def logging_as_before() -> Iterator[None]:
    """Undo what a command that a test runs in this process sets for all of it."""
    root = logging.getLogger()
    level, handlers = root.level, list(root.handlers)
    yield
    root.setLevel(level)
    for handler in root.handlers[:]:
        if handler not in handlers:
            root.removeHandler(handler)
    for handler in handlers:
        if handler not in root.handlers:
            root.addHandler(handler)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Ends the run after a stage with failures: what the next one says would be noise."""
    result = yield
    session = item.session
    if nextitem is not None and session.testsfailed:
        failed, next_one = stage(item.nodeid), stage(nextitem.nodeid)
        if failed != next_one:
            session.shouldstop = f"{failed} tests failed: {next_one} tests are not run"
    return result
