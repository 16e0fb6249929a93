"""What a simulation can be made of: public traces, manifests, snapshots, made-up jobs.

A module per format turns files into jobs and nodes; `load` finds out which it is and makes the
scenario. Pods become what the live scheduler would read: the manifest that a user would write goes
through the projections of `alnair.kube.objects`. Everything wrong with the files is told at once,
with its place and what to do, before anything runs.
"""

from alnair.sim.inputs.loading import load
from alnair.sim.inputs.options import InputOptions, Loaded, Mix

__all__ = ["InputOptions", "Loaded", "Mix", "load"]
