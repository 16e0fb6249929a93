"""What samples, logs and counters of jobs mean: cycles, phases, progress, bottlenecks. Pure.

Numbers in, findings out: no I/O, no clock and no randomness of its own.
"""
