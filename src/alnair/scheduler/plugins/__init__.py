"""The plugins: one file each, with a name and a class that compiles filters and scores for a pod class.

A plugin reads columns and never writes them.
"""
