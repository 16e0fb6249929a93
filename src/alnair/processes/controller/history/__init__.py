"""The controller's part in the history: follows jobs' lives, and reads the outboxes of agents.

What it does not write down, it finds again: by a list of what is there, by the outboxes, and by
what the history says was there before.
"""
