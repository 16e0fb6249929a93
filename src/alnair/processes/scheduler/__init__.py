"""The live scheduler: tells the engine what happens in the cluster and carries out its actions.

It decides nothing. All calls of the engine are made here, from one task.
"""
