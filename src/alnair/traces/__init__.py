"""Formats of traces and tables: what is in the files that people have, as values.

Reads lines and says everything that is wrong with them at once. What a simulation makes of a trace
is not decided here.
"""
