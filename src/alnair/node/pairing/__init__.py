"""Runs workloads as processes on this machine, alone and beside one another, and reads their rates.

What a workload does is told by its output alone; how it uses the GPU is its own matter.
"""
