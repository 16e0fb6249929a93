"""The command `alnair`: one file per verb; arguments in, text out.

What a verb does is in the packages below; nothing is decided here.
"""
