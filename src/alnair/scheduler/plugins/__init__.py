"""The plugins: one file or folder each, called as the plugin in snake case, with its class.

A plugin compiles filters and scores for a pod class; it reads columns and never writes them. It
imports no other plugin, and is known by its name to `alnair.scheduler.profiles` alone.
"""
