"""What if: questions to the production scheduler about a cluster that is only imagined.

A question starts from what is known of a cluster, changes it (nodes added, drained, removed; pods
submitted), lets the scheduler's engine decide on a virtual API server, and runs the clock on to
when running pods reach their time limits. Nothing is written anywhere; the same question about the
same state has the same answer.
"""
