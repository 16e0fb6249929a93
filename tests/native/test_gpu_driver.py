"""The real nvidia-ml-py on a fake driver that is not there at first."""

import subprocess
import sys
from pathlib import Path

from native.fake import Fake

SCRIPT = """
import asyncio
from alnair.node.gpu_driver import GpuDriver

async def main():
    driver = GpuDriver()
    await driver.look()
    print(driver.opened, driver.problem, flush=True)
    input()
    await driver.look()
    print(driver.opened, driver.problem, *(gpu.uuid for gpu in driver.gpus), flush=True)
    driver.close()

asyncio.run(main())
"""


def test_a_driver_that_comes_later_is_seen(fake: Fake, tmp_path: Path) -> None:
    state = tmp_path / "state"
    environment = {**fake.environment(), "FAKEGPU_STATE": str(state)}
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        assert process.stdout.readline().startswith("0 the NVIDIA driver does not answer: ")
        state.symlink_to(fake.state)
        said, _ = process.communicate("\n", timeout=30)
    assert said.split() == ["1", f"GPU-{fake.uuid()}"]
