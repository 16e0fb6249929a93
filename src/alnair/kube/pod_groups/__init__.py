"""PodGroups of all dialects, and which pods are their members."""
