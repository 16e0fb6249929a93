"""What a pod's specification says of its model and its input.

Looked at are annotations, labels, and a few variables and options by their well-known names, and
arguments and variables are searched for addresses of data. Nothing else of them is kept: they may
hold secrets. Of an address, user, password and query are left out for the same reason.
"""

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Final

import msgspec

from alnair.model import names
from alnair.model.job_facts import Declared, Figure, InputPlace, ModelFacts, Name
from alnair.model.quantity import QuantityError, value

#: Variables and options that name a model, the surest first.
_VARIABLES: Final = (
    *("MODEL_NAME", "MODEL_ID", "HF_MODEL_ID", "MODEL_NAME_OR_PATH", "BASE_MODEL"),
    *("PRETRAINED_MODEL_NAME_OR_PATH", "MODEL"),
)
_OPTIONS: Final = frozenset(
    (
        *("model", "model-name", "model-id", "model-name-or-path", "model-path", "base-model"),
        *("pretrained-model-name-or-path", "arch"),
    )
)
#: Programs whose first argument after this word is a model.
_SERVES: Final = ("vllm", "serve")
_SHELL: Final = re.compile(r"-[a-z]{0,4}c")
_MODEL: Final = re.compile(r"[\w][\w./@+:-]{0,199}")
_URL: Final = re.compile(
    r"(?:s3a?|gs|gcs|az|abfss?|wasbs?|hdfs|oss|cos|obs|r2|hf)://[^\s'\"<>,;]{1,500}"
)
#: "Llama-3-8B", "gpt2-124m": billions or millions of parameters.
_SIZE: Final = re.compile(r"(?:^|[-_./])(\d{1,4}(?:\.\d{1,3})?)([bBmM])(?=$|[-_.])")
_SCALE: Final = {"b": 1e9, "m": 1e6}
#: Volumes that hold no input, but what the pod is told or what it may use up.
_NO_INPUT: Final = frozenset(("configMap", "secret", "projected", "downwardAPI"))
_MOST: Final = 8


class Volume(msgspec.Struct, frozen=True):
    """A volume of a pod.

    Attributes:
        name: In its specification.
        kind: The key there that says what it is, such as `nfs`.
        where: Which one of that kind.
    """

    name: str
    kind: str
    where: str = ""


class Container(msgspec.Struct, frozen=True):
    """A container of a pod: command and arguments, variables with plain values, mounts."""

    name: str
    arguments: tuple[str, ...] = ()
    variables: Mapping[str, str] = {}
    mounts: Mapping[str, str] = {}


def declared(
    annotations: Mapping[str, str],
    labels: Mapping[str, str],
    containers: Iterable[Container],
    volumes: Iterable[Volume],
) -> Declared:
    """Return what is said.

    Args:
        annotations: Of the pod.
        labels: Likewise.
        containers: Its containers.
        volumes: Its volumes; `mounts` of a container are by their names.
    """
    every = list(containers)
    name = _named(annotations, labels, every)
    return Declared(
        ModelFacts(name, _parameters(annotations, name), _weights(annotations)),
        tuple(_places(every, volumes))[:_MOST],
    )


def _named(
    annotations: Mapping[str, str], labels: Mapping[str, str], containers: list[Container]
) -> Name | None:
    if found := _model(annotations.get(names.MODEL, "")):
        return Name(found, f"annotation {names.MODEL}")
    if found := _model(labels.get(names.MODEL, "")):
        return Name(found, f"label {names.MODEL}")
    for one in containers:
        for variable in _VARIABLES:
            if found := _model(one.variables.get(variable, "")):
                return Name(found, f"env {variable}")
        for option, text in _options(one.arguments):
            if found := _model(text):
                return Name(found, option)
    return None


def _model(text: str) -> str:
    # A path's last part says more than where it lies, and is no place on somebody's disk.
    text = text.rstrip("/").rpartition("/")[2] if text.startswith(("/", ".")) else text
    return text if _MODEL.fullmatch(text) else ""


def _options(arguments: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield options that name a model, with their values."""
    words = list(_words(arguments))
    for at, word in enumerate(words):
        after = words[at + 1] if at + 1 < len(words) else ""
        option, is_there, text = word.partition("=")
        if option.startswith("-") and option.lstrip("-").replace("_", "-").lower() in _OPTIONS:
            yield f"option {option}", text if is_there else after
        elif word == _SERVES[1] and at and words[at - 1].rpartition("/")[2] == _SERVES[0]:
            yield "arguments", after


def _words(arguments: Iterable[str]) -> Iterator[str]:
    """Yield words, also those of a script that a shell is given by -c."""
    is_script = False
    for argument in arguments:
        was_script, is_script = is_script, bool(_SHELL.fullmatch(argument))
        if not was_script:
            yield argument
            continue
        try:
            yield from shlex.split(argument[:10_000], comments=True)
        except ValueError:
            yield from argument[:10_000].split()


def _parameters(annotations: Mapping[str, str], name: Name | None) -> Figure | None:
    if said := annotations.get(names.MODEL_PARAMETERS):
        amount = _amount(said)
        return Figure(amount, f"annotation {names.MODEL_PARAMETERS}") if amount else None
    if name is not None and (found := _SIZE.search(name.value)):
        amount = float(found[1]) * _SCALE[found[2].lower()]
        return Figure(amount, "estimated: from the model's name") if amount > 0 else None
    return None


def _weights(annotations: Mapping[str, str]) -> Figure | None:
    amount = _amount(annotations.get(names.MODEL_WEIGHTS, ""))
    if not amount:
        return None
    return Figure(amount / (1 << 20), f"annotation {names.MODEL_WEIGHTS}")


def _amount(text: str) -> float | None:
    """Return a quantity, as Kubernetes writes it; 8B is said as 8G."""
    try:
        amount = float(value(text))
    except QuantityError:
        return None
    return amount if 0 < amount < 1e18 else None


def _places(containers: list[Container], volumes: Iterable[Volume]) -> Iterator[InputPlace]:
    mounts: dict[str, str] = {}
    for one in containers:
        for volume, path in one.mounts.items():
            mounts.setdefault(volume, path)
    seen = set()
    for place in (*_urls(containers), *_mounted(mounts, volumes)):
        if (place.kind, place.where) not in seen:
            seen.add((place.kind, place.where))
            yield place


def _mounted(mounts: Mapping[str, str], volumes: Iterable[Volume]) -> Iterator[InputPlace]:
    for one in volumes:
        path = mounts.get(one.name)
        if path is None or one.kind in _NO_INPUT or path.startswith("/dev/"):
            continue
        yield InputPlace(one.kind, one.where[:200] or one.name, f"volume {one.name} at {path}")


def _urls(containers: list[Container]) -> Iterator[InputPlace]:
    for one in containers:
        texts = [("arguments", argument) for argument in one.arguments]
        texts += [(f"env {name}", text) for name, text in one.variables.items()]
        for source, text in texts:
            for found in _URL.finditer(text[:10_000]):
                if address := _public(found[0]):
                    yield InputPlace("url", address, source)


def _public(url: str) -> str:
    """Return an address without user, password, query and fragment."""
    scheme, _, rest = url.partition("://")
    rest = re.split(r"[?#]", rest)[0]
    host, slash, path = rest.partition("/")
    host = host.rpartition("@")[2]
    return f"{scheme}://{host}{slash}{path}"[:200] if host else ""
