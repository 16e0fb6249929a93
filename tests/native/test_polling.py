"""Programs that ask without end whether the GPU is done: what that costs them."""

from native import build
from native.container import Container
from native.fake import Fake


def test_asking_for_an_event_does_not_look_at_the_pools_each_time() -> None:
    polls = 20_000
    with Fake(clock="wall") as fake, Container(fake.uuid(), memory_limit=1 << 34) as container:
        environment = fake.environment() | container.environment()
        build.checked(build.client("polls", "-l:libcuda.so.1"), polls, environment=environment)
        assert fake.calls("cuEventQuery") >= polls
        assert fake.calls("cuMemPoolGetAttribute") < polls / 4
