"""What `alnair agent` says of itself."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from alnair.cli import main
from alnair.cli.agent.process import CONTEXT_DEFAULT_MIB
from alnair.node.vgpu.pages.abi import CONTEXT_DEFAULT


def test_the_help_says_what_the_library_takes_for_a_context() -> None:
    assert CONTEXT_DEFAULT_MIB << 20 == CONTEXT_DEFAULT


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("--topology-policy", "restricted"), "it is what a kubelet does: add --kubelet DIR"),
        (("--topology-scope", "pod"), "it is what a kubelet does: add --kubelet DIR"),
        (("--topology-policy", "strict"), "is not one of"),
        (("--secure-serving",), "the cluster is asked who may read: add --kubeconfig FILE"),
        (("--kubeconfig=k", "--tls-cert-file=c"), "it is of --secure-serving: add that"),
        (("--kubeconfig=k", "--secure-serving", "--tls-cert-file=c"), "give both"),
        (("--dcgm-exporter", "node:9400"), "is no URL: give one such as http://"),
        (("--kubelet", "k"), "the plugin reads the pods of its node: add --kubeconfig FILE"),
        (("--kubelet-page", "http://127.0.0.1:10255/metrics/cadvisor"), "the agent's token must"),
    ],
)
def test_wrong_usage_ends_with_2_and_says_why(
    tmp_path: Path, arguments: tuple[str, ...], told: str
) -> None:
    app = main.build(["agent"])
    done = CliRunner().invoke(app, ["agent", "--folder", str(tmp_path / "a"), *arguments])
    assert done.exit_code == 2, done.output
    assert told in " ".join(done.output.replace("│", " ").split())
    assert not (tmp_path / "a").exists()
