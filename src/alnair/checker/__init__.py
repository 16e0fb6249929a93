"""The independent checker: proves from API objects alone that all promises can be kept.

It shares no code with the scheduler, on purpose: quantities, the sums of requests, selectors,
taints and the GPU documents are read here a second time, from plain objects, in exact fractions.
It may import nothing of Alnair but the transport of `alnair.kube` (a test holds it to that), and
what it finds are values; `cli.check` prints them.
"""
