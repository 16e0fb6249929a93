"""Claims for devices by dynamic resource allocation, which no scheduler of ours does yet."""

from typing import Final

from alnair.kube.objects.wire import PodSpecWire
from alnair.model import names

_REFUSAL: Final = (
    "spec.resourceClaims asks for devices by dynamic resource allocation, which this scheduler "
    f"does not do: ask by limits of {names.GPU} or {names.VGPU_MEMORY} instead, or leave the pod "
    "to kube-scheduler"
)


def device_claims_problem(spec: PodSpecWire) -> str:
    """Return why a pod with such claims is not placed, and what to do; empty without claims.

    Placed as if it had none, it would wait on its node for devices that nobody allocates.
    """
    return _REFUSAL if spec.resource_claims else ""
