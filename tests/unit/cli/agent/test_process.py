"""What `alnair agent` says of itself."""

from alnair.cli.agent.process import CONTEXT_DEFAULT_MIB
from alnair.node.vgpu.pages.abi import CONTEXT_DEFAULT


def test_the_help_says_what_the_library_takes_for_a_context() -> None:
    assert CONTEXT_DEFAULT_MIB << 20 == CONTEXT_DEFAULT
