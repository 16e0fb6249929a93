"""Processes and people: the command line and the wiring of each process.

A module per command; it turns arguments into calls of the packages below and results into text.
It holds no decision about scheduling and no knowledge of the API server's ways. Nothing imports
from here.
"""
