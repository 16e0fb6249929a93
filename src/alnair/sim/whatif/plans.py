"""A plan to free GPUs, and the cluster after its moves."""

import msgspec

from alnair.scheduler.advice.rebalance import Rebalance, RebalanceOutcome
from alnair.scheduler.advice.stranded_gpu import PodClass
from alnair.scheduler.engine.view import View
from alnair.sim.whatif.figures import Figures, figures


class Freeing(msgspec.Struct, frozen=True):
    """The wish for free GPUs: so many whole ones on each of so many nodes, by so many moves."""

    gpus: int
    moves: int
    nodes: int = 1


def freed(view: View, wanted: Freeing) -> RebalanceOutcome:
    """Return how the GPUs are freed on the books of an engine."""
    return Rebalance(view).free_gpus(wanted.gpus, wanted.moves, nodes=wanted.nodes, spare=True)


def moved(view: View, plan: RebalanceOutcome, workload: tuple[PodClass, ...]) -> Figures:
    """Return the figures after the moves of a plan; the books are left as they were."""
    with view.experiment() as experiment, experiment.attempt() as (statement, lifted):
        for move in plan.moves:
            record = view.pods[move.uid]
            lifted.lift(record)
            again = record.replacement()
            placed = statement.place_on(again, view.profiles[again.pod.scheduler], move.target)
            assert placed  # the plan was made on these books
        return figures(view, workload)
