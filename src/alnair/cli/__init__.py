"""The command `alnair`: arguments in, text out. What a verb does is in the packages below.

The file of a verb is where its words lead: `alnair up` is `up.py`, `alnair scheduler snapshot` is
`scheduler/snapshot.py`, and `process.py` is `alnair scheduler` (or `agent`) itself. Options that
belong together are groups (`option_groups`), in `*_options` and `connect`; how a verb ends that
cannot do what it shall is in `failures`; results for people are made in `text`.
"""
