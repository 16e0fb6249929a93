"""The test kit for plugins: nodes and pods in a line, and a bench that checks a plugin's contract.

It needs no cluster, no API server and no test framework; its checks raise `ContractError`, which
is an AssertionError. Nodes and pods come through the same projection as in the live scheduler.
"""

from alnair.testing.builders import node, pod
from alnair.testing.plugin_bench import ContractError, PluginBench

__all__ = ["ContractError", "PluginBench", "node", "pod"]
