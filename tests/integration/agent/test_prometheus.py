"""A real Prometheus reads what the agent says of pods, and its rules have what they ask for."""

import asyncio
import contextlib
import shutil
import subprocess
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import ClientError, ClientSession

from alnair.processes.agent.endpoints import application
from alnair.processes.agent.profiler.pod_metrics import pod_metrics
from alnair.profiler.samples import NetworkSample, ProcessSample
from alnair.serving.exposition import text_of
from alnair.serving.server import Server
from kit.fake_cgroups import UID
from kit.ports import free_port
from kit.profiled_node import GPU, MIB, ProfiledNode

RULES = Path(__file__).parents[3] / "charts" / "alnair" / "files" / "rules.yaml"


@pytest.fixture
def prometheus() -> str:
    found = shutil.which("prometheus")
    if found is None:
        pytest.skip("Prometheus is not installed (Debian, Ubuntu: apt-get install prometheus)")
    return found


@pytest.fixture
async def node(tmp_path: Path) -> ProfiledNode:
    """A pod that uses 40 % of its GPU."""
    made = ProfiledNode(tmp_path)
    path = made.pod()
    made.machine.process(17, path)
    made.machine.proc.joinpath("17", "stat").write_text("17 (x) R" + " 1" * 18 + " 4242 0\n")
    for _ in range(3):
        await made.second(ProcessSample(17, 40.0, 5.0, 100 * MIB), path=path)
    made.profiler.accounts.pods[UID].network = NetworkSample(1.0, 5, 7)
    return made


@contextlib.contextmanager
def started(prometheus: str, folder: Path, target: str) -> Iterator[str]:
    """Prometheus, which scrapes each second; yields its URL, where it soon answers."""
    address = f"127.0.0.1:{free_port()}"
    rules = yaml.safe_load(RULES.read_text())
    for group in rules["groups"]:
        group["interval"] = "1s"
    (folder / "rules.yaml").write_text(yaml.safe_dump(rules))
    scrapes = {"job_name": "agent", "static_configs": [{"targets": [target]}]}
    configuration = {
        "global": {"scrape_interval": "1s"},
        "rule_files": [str(folder / "rules.yaml")],
        "scrape_configs": [scrapes],
    }
    (folder / "prometheus.yaml").write_text(yaml.safe_dump(configuration))
    log = folder / "prometheus.log"
    command = [
        prometheus,
        f"--config.file={folder / 'prometheus.yaml'}",
        f"--storage.tsdb.path={folder / 'data'}",
        f"--web.listen-address={address}",
    ]
    with log.open("wb") as output, subprocess.Popen(command, stderr=output) as process:
        try:
            yield f"http://{address}"
        finally:
            process.terminate()


@contextlib.asynccontextmanager
async def scraped(
    prometheus: str, folder: Path, node: ProfiledNode
) -> AsyncIterator[ClientSession]:
    app = application(lambda: pod_metrics(node.profiler), node.profiler)
    async with Server(app, "127.0.0.1", 0) as server:
        (folder / "prometheus").mkdir()
        target = server.url.removeprefix("http://")
        with started(prometheus, folder / "prometheus", target) as url:
            async with ClientSession(url) as session:
                yield session


async def query(session: ClientSession, text: str) -> list[dict[str, Any]]:
    with contextlib.suppress(ClientError):
        async with session.get("/api/v1/query", params={"query": text}) as answer:
            found = (await answer.json()).get("data", {}).get("result", [])
            assert isinstance(found, list)
            return found
    return []


async def wait_for(session: ClientSession, text: str) -> list[dict[str, Any]]:
    """Ask until there is an answer."""
    async with asyncio.timeout(60):
        while True:
            if found := await query(session, text):
                return found
            await asyncio.sleep(0.2)


async def test_prometheus_has_what_pods_use_and_the_rules_made_of_it(
    prometheus: str, tmp_path: Path, node: ProfiledNode
) -> None:
    async with scraped(prometheus, tmp_path, node) as session:
        (found,) = await wait_for(session, "alnair_container_gpu_utilization_ratio")
        labels = found["metric"]
        assert (labels["pod"], labels["container"], labels["gpu"]) == ("train", "main", GPU)
        assert float(found["value"][1]) == 0.4
        (found,) = await wait_for(session, "alnair:pod_gpu_utilization_ratio:mean")
        assert float(found["value"][1]) == 0.4
        (found,) = await wait_for(session, "alnair:owner_gpu_utilization_ratio:mean")
        assert found["metric"]["owner_kind"] == "Job"
        assert found["metric"]["owner_name"] == "nightly"
        (found,) = await wait_for(session, "alnair:pod_cpu_usage_cores:rate1m")
        assert found["metric"]["pod"] == "train"
        await wait_for(session, "up == 1")
        async with session.get("/api/v1/rules") as answer:
            groups = (await answer.json())["data"]["groups"]
        said = [rule.get("lastError") for group in groups for rule in group["rules"]]
        assert [one for one in said if one] == []


async def test_names_of_metrics_are_as_prometheus_wants_them(node: ProfiledNode) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed (Debian, Ubuntu: apt-get install prometheus)")
    text = text_of(pod_metrics(node.profiler))
    found = await asyncio.to_thread(
        subprocess.run,
        [promtool, "check", "metrics"],
        input=text,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout + found.stderr
