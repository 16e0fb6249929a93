"""A model's figures: the user's word before the log's, and that before estimates."""

from alnair.model.job_facts import Figure, ModelFacts, Name
from alnair.profiler.job_facts.model_facts import model_facts
from alnair.profiler.logs.model_size import ModelSize


def test_the_surest_source_is_told() -> None:
    user = ModelFacts(Name("a", "x"), Figure(5.0, "annotation p"), Figure(7.0, "annotation w"))
    log = ModelSize(100.0, 50.0, 90.0)
    assert model_facts(user, log, 4000.0) == user
    found = model_facts(ModelFacts(), log, 4000.0)
    assert found == ModelFacts(None, Figure(100.0, "log"), Figure(90.0, "log"))


def test_an_estimate_by_the_name_gives_way_to_the_log() -> None:
    guess = ModelFacts(parameters=Figure(8e9, "estimated: from the model's name"))
    found = model_facts(guess, ModelSize(parameters=8.03e9))
    assert found is not None
    assert found.parameters == Figure(8.03e9, "log")


def test_weights_are_estimated_and_said_to_be() -> None:
    found = model_facts(ModelFacts(), ModelSize(parameters=124e6), 4000.0)
    assert found is not None
    assert found.weights_mib is not None
    assert found.weights_mib.value == 237
    assert found.weights_mib.source.startswith("estimated: at least")
    found = model_facts(ModelFacts(), ModelSize(), 4000.0)
    assert found is not None
    assert found.weights_mib is not None
    assert found.weights_mib.source.startswith("estimated: at most")


def test_what_cannot_be_in_memory_is_not_believed() -> None:
    found = model_facts(ModelFacts(), ModelSize(parameters=70e9), 4000.0)
    assert found is not None
    assert found.weights_mib is not None
    assert found.weights_mib.source.startswith("estimated: at most")


def test_nothing_is_unknown() -> None:
    assert model_facts(ModelFacts(), ModelSize()) is None
