"""What holds for all tests: stages end the run when they fail, and no test depends on time."""

from collections.abc import Iterator
from pathlib import Path

import hypothesis
import pytest

TESTS = Path(__file__).parent

# How long an example takes says more of the machine than of the code.
hypothesis.settings.register_profile("alnair", deadline=None)
hypothesis.settings.load_profile("alnair")


def stage(item: pytest.Item) -> str:
    """The folder of `tests/` that a test is in."""
    return item.path.relative_to(TESTS).parts[0]


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """Ends the run after a stage with failures: what the next one says would be noise."""
    result = yield
    session = item.session
    if nextitem is not None and session.testsfailed and stage(item) != stage(nextitem):
        session.shouldstop = f"{stage(item)} tests failed: {stage(nextitem)} tests are not run"
    return result
