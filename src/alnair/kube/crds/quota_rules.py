"""The rules of an ElasticQuota: mistakes that would change who waits, and that nobody would see.

They are rules of the spec alone. So an API server that has an older quota takes its changes of
status and metadata, and judges the spec only when somebody changes that.
"""

from collections.abc import Iterator
from typing import Final

from alnair.kube.crds.manifests import Rule
from alnair.model import names

#: What pods ask for, beside extended resources, which have a slash, and hugepages-SIZE.
PLAIN: Final = ("cpu", "memory", "ephemeral-storage", "pods")
#: MiB; below it no slice is made (`model.gpu_demand`).
_LEAST_SLICE: Final = 64
#: As those who write a ResourceQuota begin names.
_PREFIXES: Final = ("requests.", "limits.")


def rules() -> tuple[Rule, ...]:
    """Return what must hold, each with its sentence."""
    return (*_of("min"), *_of("max"), _bounds())


def _of(field: str) -> Iterator[Rule]:
    text = f"string(self.{field}[key])"
    amount = f"quantity({text})"
    is_ours = f"key in [{_listed((*names.SLICE_RESOURCES, names.VGPU))}]"
    yield _each(
        field,
        f"!isQuantity({text}) || {amount}.isLessThan(quantity('0'))",
        "is no amount: write a number of 0 or more with an optional suffix, such as 500m or 4Gi",
    )
    yield _each(
        field,
        f"{' || '.join(f'key.startsWith({one!r})' for one in _PREFIXES)} || "
        f"(key.contains('/') ? key == 'nvidia.com/gpus' || (key.startsWith('alnair/') && "
        f"!({is_ours})) : !(key in [{_listed(PLAIN)}]) && !key.startsWith('hugepages-'))",
        f"is nothing that pods request: write a resource's own name, such as cpu, memory, "
        f"{names.GPU} or {names.VGPU_MEMORY}",
    )
    yield _each(
        field,
        f"(key.contains('/') || key == 'pods') && isQuantity({text}) && !{amount}.isInteger()",
        "is counted in whole numbers: write one",
    )
    # As of a pod's own request: a suffix, or a number of GiB, where MiB are meant.
    yield _each(
        field,
        f"key == '{names.VGPU_MEMORY}' && isQuantity({text}) && "
        f"({text}.matches('([KMGTPE]i|[GTPE])$') || ({amount}.isGreaterThan(quantity('0')) && "
        f"{amount}.isLessThan(quantity('{_LEAST_SLICE}'))))",
        f"counts MiB, and the least slice is {_LEAST_SLICE}: write 8192 for 8 GiB",
    )


def _bounds() -> Rule:
    least, most = "string(self.min[key])", "string(self.max[key])"
    wrong = (
        f"key in self.max && isQuantity({least}) && isQuantity({most}) && "
        f"quantity({least}).isGreaterThan(quantity({most}))"
    )
    said = "is more than spec.max of it: lower it, or raise spec.max"
    return Rule(
        f"!has(self.min) || !has(self.max) || !self.min.exists(key, {wrong})",
        f"spec.min of a resource {said}",
        ".min",
        _naming("min", wrong, said),
    )


def _each(field: str, wrong: str, said: str) -> Rule:
    """Return that no resource of a field is wrong; its words name the first that is."""
    return Rule(
        f"!has(self.{field}) || !self.{field}.exists(key, {wrong})",
        f"spec.{field} of a resource {said}",
        f".{field}",
        _naming(field, wrong, said),
    )


def _naming(field: str, wrong: str, said: str) -> str:
    """Return the expression of a sentence that names the first resource that is wrong."""
    return f"'spec.{field} of ' + self.{field}.filter(key, {wrong})[0] + \" {said}\""


def _listed(words: tuple[str, ...]) -> str:
    return ", ".join(f"'{word}'" for word in words)
