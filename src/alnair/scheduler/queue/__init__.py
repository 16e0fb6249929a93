"""The queue: which unit (a gang, or a lone pod) is tried next, and what waits for what.

It knows nothing of nodes beyond what wakes a unit that waits.
"""
