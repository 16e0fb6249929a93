"""Who of a trace arrives when: in the order of a file, or in one that is drawn."""

from alnair.traces import arrivals
from alnair.traces.arrivals import Arrival
from alnair.traces.openb_files import Trace, names


def of_pods(trace: Trace, order: str | None, *, tune: float | None, seed: int) -> list[Arrival]:
    """Return the pods in the order of a file, or of the trace.

    Args:
        trace: Nodes and pods.
        order: A file of names, see `openb_files.names`; None for the trace's own order.
        tune: Of the trace's own order: the demand, as a multiple of the GPUs there are.
        seed: Of what is added or dropped for that.

    Raises:
        TraceFileError: The file cannot be used.
    """
    if order is not None:
        return arrivals.in_given_order(trace.pods, names(order), order)
    there = arrivals.capacity(trace.nodes)
    return arrivals.in_trace_order(trace.pods, tune=tune, capacity=there, seed=seed)


def of_pods_and_nodes(
    trace: Trace, orders: tuple[str, str] | None, *, tune: float, seed: int
) -> tuple[list[Arrival], list[str]]:
    """Return the pods in the order of arrival, and the nodes in the order that breaks ties.

    Args:
        trace: Nodes and pods.
        orders: Files of names, of pods and of nodes; None to draw both.
        tune: Of drawn ones: the demand, as a multiple of the GPUs there are.
        seed: Of the draws.

    Raises:
        TraceFileError: A file cannot be used.
    """
    if orders is None:
        there = arrivals.capacity(trace.nodes)
        drawn = arrivals.in_seeded_order(trace.pods, tune=tune, capacity=there, seed=seed)
        return drawn, arrivals.nodes_in_seeded_order(trace.nodes, seed)
    pods, nodes = orders
    given = arrivals.in_given_order(trace.pods, names(pods), pods)
    return given, arrivals.nodes_in_given_order(trace.nodes, names(nodes), nodes)
