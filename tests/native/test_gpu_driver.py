"""The real nvidia-ml-py on a fake driver that is not there at first."""

import subprocess
import sys

from native.fake import Fake

SCRIPT = """
import asyncio, os
from alnair.node.gpu_driver import GpuDriver

async def main():
    driver = GpuDriver()
    await driver.look()
    print(driver.opened, driver.problem, flush=True)
    os.environ["FAKEGPU_STATE"] = input()
    await driver.look()
    print(driver.opened, driver.problem, *(gpu.uuid for gpu in driver.gpus), flush=True)
    driver.close()

asyncio.run(main())
"""


def test_a_driver_that_comes_later_is_seen(fake: Fake) -> None:
    environment = fake.environment()
    del environment["FAKEGPU_STATE"]
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        assert process.stdout.readline().startswith("0 the NVIDIA driver does not answer: ")
        said, _ = process.communicate(f"{fake.state}\n", timeout=30)
    assert said.split() == ["1", f"GPU-{fake.uuid()}"]
