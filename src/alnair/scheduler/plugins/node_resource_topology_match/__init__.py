"""NodeResourceTopologyMatch: pods fit into NUMA zones where kubelets insist on that."""
