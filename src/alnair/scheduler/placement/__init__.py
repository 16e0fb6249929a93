"""Placing units: a statement is tried, rolled back or committed; nobody is made to leave.

Quotas, reservations for what has waited long (backfill), and gangs in topology domains.
"""
