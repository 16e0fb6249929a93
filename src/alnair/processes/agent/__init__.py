"""The agent's process: the vGPU server, its metrics, its administrators' socket, its events.

What it decides to tell or to evict comes from `alnair.node` and `alnair.sharing` as values; here it
becomes requests to the API server, or lines in the log where there is none.
"""
