"""The controller: brings what is said of groups, quotas and training jobs in line with their pods.

Level-triggered: every pass may be the first, and one that finds nothing to change writes nothing.
"""
