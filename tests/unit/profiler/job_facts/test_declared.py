"""What a pod's specification says of model and input, and what it may hold that is nobody's."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alnair.model import names
from alnair.model.job_facts import Figure, InputPlace, Name
from alnair.profiler.job_facts.declared import Container, Volume, declared


def of(*arguments: str, annotations: dict[str, str] | None = None, **variables: str) -> Container:
    del annotations
    return Container("main", arguments, variables)


@pytest.mark.parametrize(
    ("container", "name", "source"),
    [
        (of("train.py", "--model", "resnet50"), "resnet50", "option --model"),
        (of("--model_name_or_path=google/vit-b"), "google/vit-b", "option --model_name_or_path"),
        (of("sh", "-c", "cd /w && python t.py --arch 'vit_b_16' # x"), "vit_b_16", "option --arch"),
        (of("vllm", "serve", "org/tiny", "--port", "80"), "org/tiny", "arguments"),
        (of("--model-path", "/models/bert-base/"), "bert-base", "option --model-path"),
        (of(MODEL_ID="org/small"), "org/small", "env MODEL_ID"),
        (of("--model", "b", MODEL_NAME="a"), "a", "env MODEL_NAME"),
    ],
)
def test_a_model_is_named_by_options_and_variables(
    container: Container, name: str, source: str
) -> None:
    assert declared({}, {}, [container], ()).model.name == Name(name, source)


@pytest.mark.parametrize(
    "container",
    [
        of("--model"),
        of("--model", "a b;rm"),
        of("--model", "x" * 300),
        of("--modelling", "x"),
        of("sh", "-c", "echo 'unclosed --model"),
        of(API_TOKEN="org/secret", PASSWORD="model"),
    ],
)
def test_what_names_no_model_is_unknown(container: Container) -> None:
    assert declared({}, {}, [container], ()).model.name is None


def test_the_users_word_goes_first_and_amounts_are_quantities() -> None:
    said = {
        names.MODEL: "mine-7b",
        names.MODEL_PARAMETERS: "6500M",
        names.MODEL_WEIGHTS: "13Gi",
    }
    found = declared(said, {}, [of("--model", "other")], ()).model
    assert found.name == Name("mine-7b", f"annotation {names.MODEL}")
    assert found.parameters == Figure(6.5e9, f"annotation {names.MODEL_PARAMETERS}")
    assert found.weights_mib == Figure(13 * 1024.0, f"annotation {names.MODEL_WEIGHTS}")


@pytest.mark.parametrize("text", ["many", "-3", "0", "", "1e99"])
def test_an_amount_that_is_none_is_unknown(text: str) -> None:
    said = {names.MODEL_PARAMETERS: text, names.MODEL_WEIGHTS: text}
    found = declared(said, {}, [], ()).model
    assert found.weights_mib is None
    assert found.parameters is None


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("org/Some-8B-Instruct", 8e9), ("gpt2-124m", 124e6), ("x-0.5b", 5e8), ("resnet50", None)],
)
def test_a_size_in_the_name_is_an_estimate(name: str, parameters: float | None) -> None:
    found = declared({}, {}, [of("--model", name)], ()).model.parameters
    assert (found and found.value) == parameters
    assert found is None or found.source.startswith("estimated")


def test_volumes_are_places_of_input_by_what_they_are() -> None:
    mounts = {"data": "/data", "shm": "/dev/shm", "config": "/etc/app", "scratch": "/tmp/s"}
    volumes = [
        Volume("data", "persistentVolumeClaim", "images"),
        Volume("shm", "emptyDir"),
        Volume("config", "configMap"),
        Volume("scratch", "emptyDir"),
        Volume("unused", "nfs", "server:/export"),
    ]
    found = declared({}, {}, [Container("main", mounts=mounts)], volumes).places
    assert found == (
        InputPlace("persistentVolumeClaim", "images", "volume data at /data"),
        InputPlace("emptyDir", "scratch", "volume scratch at /tmp/s"),
    )


def test_addresses_lose_what_may_be_secret() -> None:
    made = of(
        "--data",
        "s3://AKIA:s3cr3t@bucket/train?X-Signature=abc#f",
        DATA_URL="gs://pictures/2026,gs://more/x",
        TOKEN="hf_s3cr3t",
    )
    found = declared({}, {}, [made], ()).places
    assert [(one.kind, one.where, one.source) for one in found] == [
        ("url", "s3://bucket/train", "arguments"),
        ("url", "gs://pictures/2026", "env DATA_URL"),
        ("url", "gs://more/x", "env DATA_URL"),
    ]
    assert "s3cr3t" not in repr(found)


@given(st.lists(st.text(max_size=200), max_size=5), st.text(max_size=100))
def test_any_text_is_survived_and_what_is_kept_is_bounded(words: list[str], text: str) -> None:
    found = declared({names.MODEL_WEIGHTS: text}, {}, [of(*words, MODEL=text)], ())
    assert found.model.name is None or len(found.model.name.value) <= 200
    assert len(found.places) <= 8
