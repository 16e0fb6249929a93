"""The nouns: quantities, cluster, workload, custom resources, actions.

Values only. No I/O, no clock, no randomness, and no import from any other package of Alnair.
"""
