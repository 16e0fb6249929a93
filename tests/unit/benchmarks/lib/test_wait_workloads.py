"""Workloads that wait: the load is what was asked for, and a seed gives the same jobs again."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

FILE = Path(__file__).resolve().parents[4] / "benchmarks" / "lib" / "wait_workloads.py"


@pytest.fixture(scope="module")
def workloads() -> ModuleType:
    spec = importlib.util.spec_from_file_location("wait_workloads", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("workload", ["philly", "tail"])
def test_jobs_ask_for_so_many_times_the_gpus_while_they_come(
    workloads: ModuleType, workload: str
) -> None:
    told = workloads.scenario(workload, 0.95, 1)
    there = sum(len(node.gpus) for node in told.nodes)
    offered = sum(workloads.gpus_of(job) * job.duration for job in told.jobs)
    assert offered / told.jobs[-1].submitted == pytest.approx(0.95 * there, rel=0.05)
    assert max(job.duration for job in told.jobs) <= workloads.LONGEST[workload]


def test_a_seed_gives_the_same_jobs_again_and_another_one_others(workloads: ModuleType) -> None:
    first, again, other = (workloads.scenario("philly", 1.0, seed).jobs for seed in (1, 1, 2))
    assert first == again
    assert first != other


def test_a_list_that_comes_twice_has_every_name_once(workloads: ModuleType) -> None:
    jobs = workloads.scenario("philly", 1.0, 1, times=2).jobs
    assert len({job.name for job in jobs}) == len(jobs)
