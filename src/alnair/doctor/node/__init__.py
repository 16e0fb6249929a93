"""Checks of the machine that they run on, or of the node below whose root a container sees."""
