"""One real node beside the simulated ones: containerd, kubelet, kube-proxy and DNS, as root.

The node lives in namespaces of its own, below one process (its PID 1): no mount, address, packet
rule or sysctl of the machine is changed, and removing the node is ending that process. What is to
be (addresses, files, command lines) is said by pure functions; `node.py` acts.
"""
