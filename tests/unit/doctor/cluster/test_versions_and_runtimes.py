"""Versions as servers and nodes write them."""

import pytest

from alnair.doctor.cluster import runtimes, versions
from alnair.doctor.cluster.look import ClusterLook
from alnair.doctor.finding import Level


class Answers(ClusterLook):
    """A look whose paths are answered from here; what is not there is not served."""

    def __init__(self, answers: dict[str, dict[str, object]]) -> None:
        self._answers = answers

    async def json(self, path: str) -> dict[str, object] | None:
        return self._answers.get(path)


@pytest.mark.parametrize(
    ("said", "level"),
    [
        ("v1.36.3", Level.OK),
        ("v1.30.0-eks-1552ad0", Level.OK),
        ("v1.29.15+k3s1", Level.ERROR),
        ("", Level.WARNING),
    ],
)
async def test_an_api_server_before_1_30_is_an_error(said: str, level: Level) -> None:
    (finding,) = await versions.api_server(Answers({"/version": {"gitVersion": said}}))
    assert finding.level is level


@pytest.mark.parametrize(
    ("served", "level", "word"),
    [
        ({"v1": ["validating", "mutating"]}, Level.OK, "as v1"),
        ({"v1": ["validating"], "v1beta1": ["mutating"]}, Level.OK, "as v1beta1"),
        ({"v1": ["validating"]}, Level.WARNING, "before Kubernetes 1.36"),
        ({"v1beta1": ["validating"]}, Level.ERROR, "is not served"),
    ],
)
async def test_what_lacks_before_mutating_policies_is_told(
    served: dict[str, list[str]], level: Level, word: str
) -> None:
    answers = {
        f"/apis/admissionregistration.k8s.io/{version}": {
            "resources": [{"name": f"{kind}admissionpolicies"} for kind in kinds]
        }
        for version, kinds in served.items()
    }
    (finding,) = await versions.served(Answers(answers))  # type: ignore[arg-type]
    assert finding.level is level
    assert word in finding.what


@pytest.mark.parametrize(
    ("said", "level"),
    [
        ("containerd://2.1.4", Level.OK),
        ("containerd://1.7.27-k3s1", Level.WARNING),
        ("containerd://1.6.9", Level.ERROR),
        ("cri-o://1.33.1", Level.OK),
        ("docker://27.0.1", Level.WARNING),
    ],
)
def test_a_runtime_without_cdi_is_an_error(said: str, level: Level) -> None:
    finding = runtimes.judged(said, "node/n")
    assert finding is not None
    assert finding.level is level


def test_nodes_that_run_no_containers_have_no_runtime() -> None:
    assert runtimes.judged("kwok-v0.7.0", "node/n") is None
    assert runtimes.judged("", "node/n") is None
