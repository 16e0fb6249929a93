"""What happened in a cluster, simulated or live: records, their files, metrics and reports.

It is computed from a finished history alone; nothing here asks a cluster or a simulator.
"""
