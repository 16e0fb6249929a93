"""Scheduling decisions: pure functions on values.

What is known of the cluster is kept in NumPy columns, one row per node; plugins filter and score
rows for classes of pods; the engine turns events into actions. No I/O, no clock, no randomness of
its own: times and seeds come in as arguments, so the live process and a simulator run the same
code.
"""
