"""Reports on live clusters: what is seen is noted, folded and built into a history."""
