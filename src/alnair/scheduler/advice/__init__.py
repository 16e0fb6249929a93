"""Advice for people: why a pod waits, what would help, which moves free GPUs.

It tries on copies and statements, and changes nothing.
"""
