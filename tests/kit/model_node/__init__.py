"""A model of a node: the kubelet, the device plugin, the API server, schedulers, and a judge.

It is for properties of `alnair.sharing.matching`: everything around it behaves as the real thing
does, at its worst moments, and the judge looks at what runs in the end, not at what was decided.
"""
