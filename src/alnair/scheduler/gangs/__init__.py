"""Gangs: which pods belong together, how far each gang is, and what its PodGroup says.

Places nothing.
"""
