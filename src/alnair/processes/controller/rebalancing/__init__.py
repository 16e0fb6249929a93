"""Rebalancing as a loop: now and then a few pods are moved, so that somebody starts who waits.

What is moved is decided by `alnair.scheduler.advice.rebalance_round`; this carries it out, in steps
that whoever leads next can repeat.
"""
