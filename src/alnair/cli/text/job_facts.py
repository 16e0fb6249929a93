"""What a job works on, in words: each fact with its source, and `unknown` where nobody says it."""

from collections.abc import Callable

from alnair.model.api_types import Workload
from alnair.model.job_facts import CudaCalls, Figure, InputFacts, ModelFacts

UNKNOWN = "unknown"
#: Classes of calls that a row of a table has room for.
_MOST = 3


def count(value: float) -> str:
    """Return 124M for 124,439,808."""
    for scale, letter in ((1e12, "T"), (1e9, "B"), (1e6, "M"), (1e3, "k")):
        if value >= scale:
            return f"{value / scale:.3g}{letter}"
    return f"{value:.3g}"


def model_name(model: ModelFacts | None) -> str:
    """Return the name, or `unknown`."""
    return model.name.value if model is not None and model.name is not None else UNKNOWN


def parameters(model: ModelFacts | None) -> str:
    """Return how many, with ~ before an estimate."""
    return _short(model.parameters if model is not None else None, count)


def weights(model: ModelFacts | None) -> str:
    """Return MiB, with ~ before an estimate."""
    return _short(model.weights_mib if model is not None else None, lambda mib: f"{mib:,.0f}")


def places(found: InputFacts | None) -> str:
    """Return where input comes from."""
    names = [place.where for place in found.places] if found is not None else []
    more = f" and {len(names) - 2}" if len(names) > 2 else ""
    return ", ".join(names[:2]) + more if names else UNKNOWN


def epoch_mib(found: InputFacts | None) -> str:
    """Return MiB read in an epoch."""
    return _short(found.epoch_mib if found is not None else None, lambda mib: f"{mib:,.0f}")


def calls(found: CudaCalls | None) -> str:
    """Return the classes that are called most."""
    if found is None or not found.shares:
        return UNKNOWN
    most = sorted(found.shares.items(), key=lambda one: -one[1])[:_MOST]
    return ", ".join(f"{name} {share:.0%}" for name, share in most)


def calls_per_s(found: CudaCalls | None) -> str:
    """Return calls each second."""
    return UNKNOWN if found is None or found.per_s is None else count(found.per_s)


def lines(workload: Workload) -> list[tuple[str, str]]:
    """Return (what, text) of all that a workload says of its work."""
    model, read, cuda = workload.model, workload.input, workload.cuda
    name = model.name if model is not None else None
    rows = [
        ("model", f"{name.value} ({name.source})" if name else UNKNOWN),
        ("parameters", _long(model.parameters if model else None, count)),
        ("weights", _long(model.weights_mib if model else None, lambda mib: f"{mib:,.0f} MiB")),
    ]
    found = read.places if read is not None else ()
    rows += [("input", f"{one.kind} {one.where} ({one.source})") for one in found]
    if not found:
        rows.append(("input", UNKNOWN))
    rows.append(
        ("an epoch", _long(read.epoch_mib if read else None, lambda mib: f"{mib:,.0f} MiB"))
    )
    if cuda is None or cuda.unknown or not cuda.shares:
        why = f" ({cuda.unknown})" if cuda is not None and cuda.unknown else ""
        return [*rows, ("CUDA calls", UNKNOWN + why)]
    parts = ", ".join(
        f"{one} {share:.1%}" for one, share in sorted(cuda.shares.items(), key=lambda x: -x[1])
    )
    return [*rows, ("CUDA calls", f"{calls_per_s(cuda)}/s: {parts} ({cuda.source})")]


def _short(figure: Figure | None, text: Callable[[float], str]) -> str:
    if figure is None:
        return UNKNOWN
    return ("~" if figure.source.startswith("estimated") else "") + text(figure.value)


def _long(figure: Figure | None, text: Callable[[float], str]) -> str:
    return UNKNOWN if figure is None else f"{text(figure.value)} ({figure.source})"
