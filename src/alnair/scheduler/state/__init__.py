"""What is known of the cluster: values and columns, kept current by deltas.

Decides nothing: it answers what is free, who holds what, and what matches. The lowest shelf of the
scheduler; it knows no plugin, no queue and no engine.
"""
