"""The NUMA zones of nodes: as exporters report them, and what we booked since."""
