"""What each pod and container of a node uses, second by second, and over its life. Pure.

Samples of groups, networks and GPUs in; who uses which GPU, figures and digests out.
"""
