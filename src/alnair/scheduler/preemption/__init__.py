"""Preemption: which pods must leave so that others fit, and the room held until they have.

It chooses victims; the process carries evictions out.
"""
