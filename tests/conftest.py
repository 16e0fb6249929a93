"""What holds for all tests: their order, stages end the run when they fail, no deadlines."""

import gc
import logging
from collections.abc import Iterator

import hypothesis
import pytest

from alnair.cli.entry import use_one_thread_for_algebra
from kit import images_ahead
from kit.soak import cases
from lanes import Took, lane, longest, order, place, stage

# As the command does, which most tests have no part of.
use_one_thread_for_algebra()
#: Stages that had a failing test in this process.
_FAILED = pytest.StashKey[set[str]]()
#: Examples of each random test.
EXAMPLES = len(cases(40))
# How long an example takes says more of the machine than of the code.
hypothesis.settings.register_profile("alnair", deadline=None, max_examples=EXAMPLES)
hypothesis.settings.load_profile("alnair")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keeps together what shares a cluster."""
    parallel = hasattr(config, "workerinput")
    items.sort(key=lambda item: place(item.nodeid, parallel=parallel))


def pytest_sessionstart(session: pytest.Session) -> None:
    """Begins what takes long and needs nobody: once, where there are processes to wait for it."""
    config = session.config
    # A process that shares the work out, and none of those that do it.
    shares = getattr(config.option, "dist", "no") != "no" and not hasattr(config, "workerinput")
    if shares and images_ahead.are_needed(config.args):
        build = images_ahead.begin()
        config.add_cleanup(lambda: images_ahead.end(build))


def pytest_collection_finish() -> None:
    """Takes all that was collected out of the garbage collector's rounds: it stays to the end."""
    gc.collect()
    gc.freeze()
    # At Python's 700 objects looking for cycles took a tenth of all unit tests' time.
    gc.set_threshold(20_000)


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
    session, before = item.session, item.session.testsfailed
    result = yield
    failed = item.config.stash.setdefault(_FAILED, set())
    if session.testsfailed > before:
        failed.add(stage(item.nodeid))
    if nextitem is not None:
        next_one = stage(nextitem.nodeid)
        # What is long has begun before its stage: what it finds does not end the stages before.
        if first := min((one for one in failed if order(one) < order(next_one)), default=""):
            session.shouldstop = f"{first} tests failed: {next_one} tests are not run"
    return result


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Tells of a run in several processes what its time went to, beside the slowest tests."""
    took = [
        Took(report.nodeid, report.node.gateway.id, report.start, report.stop)
        for reports in terminalreporter.stats.values()
        for report in reports
        if isinstance(report, pytest.TestReport) and hasattr(report, "node") and report.start
    ]
    if took:
        terminalreporter.section("longest lanes")
        for line in longest(took):
            terminalreporter.write_line(line)
