"""Runs workloads as Jobs of a cluster, alone and beside one another, and reads their rates.

A run's Jobs end by themselves and are removed by the cluster, should nobody be left to do it.
"""
