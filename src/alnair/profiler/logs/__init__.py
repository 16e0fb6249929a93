"""What a training's log says in numbers: framework, step, epoch, loss, rate.

A log is another's text: lines may be endless, hold control characters or be made to look like
steps. So lines are cut, every expression here takes time in proportion to the line, memory does not
grow with the log, and nothing but numbers and names of our own is kept of it.
"""
