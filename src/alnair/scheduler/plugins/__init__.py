"""The plugins: one file each, with a name and a class.

A plugin compiles filters and scores for a pod class; it reads columns and never writes them.
"""
