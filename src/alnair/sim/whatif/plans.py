"""A plan to free GPUs, and the cluster after its moves."""

import msgspec

from alnair.scheduler.advice.rebalance import Outcome, Rebalance
from alnair.scheduler.advice.stranded_gpu import PodClass
from alnair.scheduler.engine.engine import Engine
from alnair.scheduler.placement.statement import Statement
from alnair.scheduler.state.without_pods import WhatIf
from alnair.sim.whatif.figures import Figures, figures


class Freeing(msgspec.Struct, frozen=True):
    """The wish for free GPUs: so many whole ones on each of so many nodes, by so many moves."""

    gpus: int
    moves: int
    nodes: int = 1


def freed(engine: Engine, wanted: Freeing) -> Outcome:
    """Return how the GPUs are freed on the books of an engine."""
    books = Rebalance(engine, engine.profiles)
    return books.free_gpus(wanted.gpus, wanted.moves, nodes=wanted.nodes, spare=True)


def moved(engine: Engine, plan: Outcome, workload: tuple[PodClass, ...]) -> Figures:
    """Return the figures after the moves of a plan; the books are left as they were."""
    accounts = engine.accounts
    statement = Statement(accounts, engine.evaluations, 0.0)
    with WhatIf(accounts) as trial:
        for move in plan.moves:
            record = accounts.records[move.uid]
            trial.lift(record)
            again = record.replacement()
            placed = statement.place_on(again, engine.profiles[again.pod.scheduler], move.target)
            assert placed  # the plan was made on these books
        then = figures(engine, workload)
        statement.rollback()
    return then
