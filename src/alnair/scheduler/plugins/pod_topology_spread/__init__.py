"""PodTopologySpread: pods of a kind evenly over zones, nodes or other topology domains."""
