"""Is the API server new enough, and does it serve what admission needs?"""

import re
from typing import Final

from alnair.doctor.cluster.look import INSTALL, ClusterLook
from alnair.doctor.finding import Finding, error, ok, warning

#: The first with ValidatingAdmissionPolicy as v1.
OLDEST: Final = (1, 30)
#: The first that serves MutatingAdmissionPolicy by default.
MUTATING: Final = (1, 36)
_ADMISSION: Final = "/apis/admissionregistration.k8s.io"
_MUTATING_VERSIONS: Final = ("v1", "v1beta1", "v1alpha1")

_NO_MUTATING: Final = (
    "MutatingAdmissionPolicy is not served, as before Kubernetes 1.36: nothing adds alnair/vgpu and"
    " the seccomp profile to pods with slices. Install so, and write both by hand; or start"
    " kube-apiserver with --feature-gates=MutatingAdmissionPolicy=true and"
    " --runtime-config=admissionregistration.k8s.io/v1beta1=true"
)


async def api_server(look: ClusterLook) -> list[Finding]:
    """The API server is 1.30 or newer."""
    said = (await look.json("/version") or {}).get("gitVersion", "")
    found = version(said)
    if found is None:
        return [warning(f"the API server says {said!r}, which is no version")]
    if found < OLDEST:
        return [
            error(
                f"the API server is {said}; Alnair needs 1.30, the first with admission policies",
                fix="kubeadm upgrade plan",
            )
        ]
    return [ok(f"the API server is {said}")]


async def served(look: ClusterLook) -> list[Finding]:
    """It serves admission policies, those that add what a slice needs among them (1.36)."""
    kinds = {one: await _plurals(look, one) for one in _MUTATING_VERSIONS}
    if "validatingadmissionpolicies" not in kinds["v1"]:
        return [error("ValidatingAdmissionPolicy v1 is not served", fix="kubeadm upgrade plan")]
    at = mutating_version(kinds)
    if at:
        return [ok(f"admission policies are served, mutating ones as {at}")]
    return [
        warning(
            _NO_MUTATING,
            fix=f"{INSTALL} --set admission.mutating=false",
        )
    ]


async def _plurals(look: ClusterLook, at: str) -> set[str]:
    found = await look.json(f"{_ADMISSION}/{at}") or {}
    return {one["name"] for one in found.get("resources", [])}


def mutating_version(kinds: dict[str, set[str]]) -> str:
    """Return the best version of mutating policies; "" where there is none."""
    wanted = "mutatingadmissionpolicies"
    return next((one for one in _MUTATING_VERSIONS if wanted in kinds[one]), "")


async def mutating(look: ClusterLook) -> str:
    """Return as which version mutating policies are served; "" where they are not."""
    return mutating_version({one: await _plurals(look, one) for one in _MUTATING_VERSIONS})


def version(text: str) -> tuple[int, int] | None:
    """Return major and minor of a version such as `v1.36.2+k3s1`; None if it is none."""
    found = re.match(r"v?(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else None
