"""The plugin contract, with the names of kube-scheduler, and what runs plugins.

Filters and scores of one pod class over all nodes are computed, cached and guarded here. It names
no plugin, and knows neither queue nor engine.
"""
