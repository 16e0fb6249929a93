"""Pod request cases: what scoring counts as requested."""

from conformance.bench import Bench
from conformance.document import Case
from conformance.outcome import NotCoveredError, same


def check(name: str, case: Case) -> None:
    """Raise unless the same is counted."""
    if name != "NodeResourcesFit" or "score_requests" not in case.want:
        raise NotCoveredError(f"requests as {name} counts them")
    spec = Bench(case).spec
    counted = {**dict(spec.requests), "cpu": spec.scored_cpu, "memory": spec.scored_memory}
    for resource, wanted in case.want["score_requests"].items():
        same(resource, counted.get(resource, 0), wanted)
