"""I/O with the Kubernetes API server: one client, one cache, one tree of errors.

Everything here turns bytes of the API server into values and values into requests. It decides
nothing: which pod goes where, when to retry a refused decision and what to do on leadership are
matters of the packages above and below.

It may import `alnair.scheduler` and `alnair.model`, for their nouns. It may not know processes,
command lines or local clusters (`alnair.cli`, `alnair.local`), and no other HTTP client, JSON
library or generated model than its own.
"""
