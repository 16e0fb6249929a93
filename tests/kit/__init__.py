"""What tests share and is no test: builders, a simulated API server, oracles, processes.

`oracles` are second implementations that decisions are compared with, `live` is for tests against a
real control plane, `checker` for those of `alnair check`.
"""
