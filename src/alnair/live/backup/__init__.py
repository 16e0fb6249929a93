"""What people have told Alnair in a cluster, as a file, and from a file again.

That is what nothing else can make anew: PodGroups, ElasticQuotas, and the labels by which nodes and
namespaces opt in. All other state is derived from it, from pods, or from the node.
"""
