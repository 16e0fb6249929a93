"""Nodes as columns: resources, labels, images, taints; one row per node."""
