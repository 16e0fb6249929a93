"""What a job works on, in words; what nobody says is unknown, with the reason if there is one."""

from alnair.cli.text import job_facts
from alnair.model.api_types import Workload
from alnair.model.job_facts import CudaCalls, Figure, InputFacts, InputPlace, ModelFacts, Name

MODEL = ModelFacts(
    Name("bert-base", "env MODEL_NAME"),
    Figure(109.5e6, "log"),
    Figure(209.0, "estimated: at least"),
)
READ = InputFacts(
    (InputPlace("nfs", "server:/data", "volume data at /data"),),
    epoch_mib=Figure(1200.0, "bytes read from disks"),
)
CALLS = CudaCalls(1234.0, {"launch": 0.9, "h2d": 0.06, "sync": 0.03, "d2h": 0.01}, "the slice's")


def test_each_fact_has_its_source() -> None:
    found = dict(job_facts.lines(Workload(1, "t", model=MODEL, input=READ, cuda=CALLS)))
    assert found == {
        "model": "bert-base (env MODEL_NAME)",
        "parameters": "110M (log)",
        "weights": "209 MiB (estimated: at least)",
        "input": "nfs server:/data (volume data at /data)",
        "an epoch": "1,200 MiB (bytes read from disks)",
        "CUDA calls": "1.23k/s: launch 90.0%, h2d 6.0%, sync 3.0%, d2h 1.0% (the slice's)",
    }


def test_what_nobody_says_is_unknown_with_the_reason() -> None:
    found = dict(job_facts.lines(Workload(1, "t", cuda=CudaCalls(unknown="nobody counts"))))
    assert found.pop("CUDA calls") == "unknown (nobody counts)"
    assert set(found.values()) == {"unknown"}


def test_rows_of_a_table_are_short_and_mark_estimates() -> None:
    assert job_facts.model_name(MODEL) == "bert-base"
    assert job_facts.parameters(MODEL) == "110M"
    assert job_facts.weights(MODEL) == "~209"
    assert job_facts.calls(CALLS) == "launch 90%, h2d 6%, sync 3%"
    assert job_facts.places(None) == job_facts.calls_per_s(None) == "unknown"
