"""Reports on live clusters: what is seen is noted, folded and built into a history.

`observed` reduces API objects to records, `record_file` keeps them in a file, `known` folds them,
and `building` makes of that an `alnair.history.history.History`, whose metrics are those of a
simulation. One look at a cluster goes the same way as a record of months.
"""
