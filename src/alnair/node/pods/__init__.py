"""What the containers of a node's pods use, as the kernel's files say it: control groups, network.

It knows pods by their uids and containers by the runtime's ids; names come from elsewhere.
"""
