"""The agent's process: the vGPU server, its figures, its door for administrators, its words.

What it decides to tell or to evict comes from `alnair.node` and `alnair.sharing` as values; here it
becomes requests to the API server, or lines in the log where there is none.
"""
