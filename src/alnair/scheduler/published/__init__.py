"""Placement policies of the literature as plugins, to compare ours with.

They are rebuilt to the letter of Weng et al., *Beware of Fragmentation* (USENIX ATC'23), whose
simulator they agree with pod by pod, and not meant for live clusters: scores are measured against
that trace's largest node, and a share of a GPU is 64 MiB per thousandth
(`alnair.sim.placement.trace_values`).
"""

from typing import Final

#: MiB of a GPU that stand for a thousandth of it, where a trace knows only thousandths.
MIB_PER_MILLI: Final = 64
#: The largest node of the trace, by which scores are measured: millicores and milli-GPUs.
LARGEST_CPU: Final = 128_000.0
LARGEST_GPU: Final = 8_000.0
