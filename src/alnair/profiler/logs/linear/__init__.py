"""Regular expressions whose time grows with the length of a line, and never faster.

The expressions of Python's `re` may take exponential time (`(a+)+b`), and cannot be interrupted. A
user's pattern meets lines that others write, so it is run by an automaton instead: all ways of
matching are followed at once, each place of the pattern at most once for each character (Thompson
1968, with captures after Pike). What `re` can do beyond that is refused.
"""
