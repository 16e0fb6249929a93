"""The simulator: the production decision code on a virtual clock, on traces.

`alnair.sim.virtual_api` plays the API server, traces say what happens when, and
`alnair.scheduler.engine.engine` decides as it does in a live cluster. Nothing here talks to a
network, reads a wall clock, or is random other than by a seed that it is given; so the same inputs
give the same decisions, bit by bit. Commands and displays are in `alnair.cli`.
"""
