"""I/O with the machine: NVML, cgroups, `/proc`, the vGPU server's socket and files, MPS daemons.

It decides nothing: what follows from what it sees is decided by `alnair.sharing`, on values. It
knows no API server; `alnair.cli` joins the two.
"""
