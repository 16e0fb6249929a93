"""Each hooked function, in each variant, answers as the driver does where no limit binds."""

from collections.abc import Callable
from pathlib import Path

import pytest

from native import build
from native.container import Container
from native.fake import Fake

CONTEXT = 522 << 20


@pytest.mark.valgrind
@pytest.mark.parametrize("cuda", [12040, 13050])
def test_all_results_are_the_drivers_own(
    cuda: int, fake: Fake, container: Callable[..., Container], tmp_path: Path
) -> None:
    program = build.client("every_hook")
    free = {**fake.environment("without", cuda=cuda), "HOME": str(tmp_path)}
    without = build.checked(program, environment=free).splitlines()
    limited = container(memory_limit=fake.total(), compute_percent=90, context_bytes=CONTEXT)
    held = {**fake.environment("a", cuda=cuda), **limited.environment()}
    with_limits = build.checked(program, environment=held).splitlines()
    assert with_limits[:-1] == without[:-1]
    assert len(without) > 200
    assert fake.peak("a") == fake.peak("without")
    # Of which the library's ledger knew to the byte: it is what cuMemGetInfo told of.
    assert with_limits[-1] == without[-1]
