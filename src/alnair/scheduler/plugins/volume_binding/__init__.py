"""VolumeBinding: nodes that reach the bound volumes; storage for claims that wait for a node."""
