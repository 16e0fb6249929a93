"""Snapshots of a scheduler: what its decisions depend on in one file; decisions on it again."""
