"""The operator of training jobs: follows them and their objects, and brings both in line.

What there shall be is decided in `alnair.elastic`; here it is observed and carried out.
"""
