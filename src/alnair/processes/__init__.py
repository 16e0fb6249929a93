"""The processes: the scheduler, the controller and the agent; a package each.

Wiring: they feed decisions with events and carry their actions out. No process imports another.
"""
