"""Decisions about shared GPUs, on values: rates of compute, corrections, violations, tiers.

Pure: no I/O, no clock and no randomness of its own; `now` comes in as an argument.
"""
