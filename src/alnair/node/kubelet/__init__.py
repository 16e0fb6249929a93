"""The kubelet: its device-plugin and pod-resources APIs, and what containers get of a GPU by CDI.

Reads and writes sockets and files; what follows from them is decided in `alnair.sharing`.
"""

import os

# gRPC's own core writes a line to stderr whenever a kubelet goes; said before it is loaded.
os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
