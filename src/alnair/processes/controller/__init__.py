"""The controller: brings what the API says about groups and quotas in line with their pods.

Level-triggered: every pass may be the first, and one that finds nothing to change writes nothing.
"""
