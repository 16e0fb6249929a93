"""A live cluster seen from outside the scheduler: followed, explained, rebalanced, recorded.

What commands and processes share that read a real API server. It knows nothing of the simulator.
"""
