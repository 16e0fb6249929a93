"""How far a job is and when it will be done, from steps seen over time.

What is left takes the time of its steps, and of the breaks between them (evaluation, checkpoints)
that are still to come. Both are learned apart, since breaks are rare and long. A machine that is busy
now and then is better told by the plain mean: a job's own past decides which of the two it is.
"""
