"""How far a job is and when it will be done, from steps seen over time.

What is left takes the time of its steps, and of the breaks between them (evaluation, checkpoints)
that are still to come. Both are learned apart, since breaks are rare and long. Where a machine is
busy now and then, the plain mean tells more: a job's own past decides which of the two it is.
"""
