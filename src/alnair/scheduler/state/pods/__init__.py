"""Pods on nodes as selectors, affinity terms and host ports see them."""
