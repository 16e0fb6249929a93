"""Some jobs of a trace as elastic ones."""

from alnair.sim.inputs.elastic_jobs import some_elastic
from kit import make
from kit.simulation import job

NODES = [make.node(gpus=8)]


def test_a_job_of_whole_gpus_becomes_workers_of_one_each() -> None:
    [made] = some_elastic([job("a", make.spec(whole=4), pods=2)], 1.0, 0, "alnair-scheduler", NODES)
    assert [pod.spec.gpu.whole for pod in made.pods if pod.spec.gpu] == [1] * 8
    assert made.elastic is not None
    assert (made.elastic.least, made.elastic.most) == (2, 16)
    assert made.elastic.speeds[7] == 1.0
    assert made.gang is not None


def test_jobs_of_a_single_gpu_or_of_slices_stay_as_they_are() -> None:
    jobs = [job("one", make.spec(whole=1)), job("part", make.spec(slice_mib=4096, compute=50))]
    assert some_elastic(jobs, 1.0, 0, "alnair-scheduler", NODES) == jobs


def test_the_share_is_drawn_by_the_seed() -> None:
    jobs = [job(f"j{i}", make.spec(whole=2)) for i in range(200)]
    found = [some_elastic(jobs, 0.3, seed, "alnair-scheduler", NODES) for seed in (0, 0, 1)]
    names = [[one.name for one in each if one.elastic] for each in found]
    assert names[0] == names[1] != names[2]
    assert 40 < len(names[0]) < 80
