"""Room for a gang: where all that it lacks can land together, and the victims that it takes."""

from collections.abc import Sequence
from typing import Final

import msgspec
import numpy as np

from alnair.scheduler.framework.extension_points import PostFilterPlugin
from alnair.scheduler.placement.context import EngineContext
from alnair.scheduler.placement.statement import Statement
from alnair.scheduler.placement.topology_domains import Level
from alnair.scheduler.preemption.losses import Cost
from alnair.scheduler.preemption.victim_search import Search
from alnair.scheduler.queue.unit import ClassKey
from alnair.scheduler.state.accounts import Record
from alnair.scheduler.state.disruption_budgets import budgets, split
from alnair.scheduler.state.gpus.devices import Booking
from alnair.scheduler.state.nodes.columns import Mask
from alnair.scheduler.state.without_pods import WithoutPods

#: A pod and where room is made for it: the row and its GPUs there.
Landing = tuple[Record, int, tuple[Booking, ...]]
#: Pods with the rows that each may use, None for all.
Wanting = Sequence[tuple[Record, Mask | None]]

#: Domains where room can be made that are compared, of those that seem cheapest.
_COMPARED: Final = 4


class GangLanding(msgspec.Struct, frozen=True):
    """Where pods of a gang can land, and who must go for that."""

    landings: list[Landing]
    victims: list[Record]
    cost: Cost


class GangRoom:
    """Searches room for gangs; leaves the books as they were.

    Args:
        context: what to decide from.
        search: for victims of single pods.
    """

    def __init__(self, context: EngineContext, search: Search) -> None:
        self._accounts = context.accounts
        self._evaluations = context.evaluations
        self._profiles = context.profiles
        self._search = search

    def best(
        self,
        pods: Wanting,
        wanted: int,
        required: str,
        home: Sequence[int],
        post: PostFilterPlugin,
        now: float,
    ) -> GangLanding | None:
        """Return where so many of the pods can land together; None if they cannot, or just do.

        Args:
            pods: those that wait, in the order in which they are tried.
            wanted: how many must land.
            required: the node label in one of whose domains all must be, empty if anywhere.
            home: rows of members that are placed already.
            post: how far they may go.
            now: seconds since the epoch.
        """
        if not required:
            return self._within(pods, wanted, post, now)
        best: GangLanding | None = None
        compared = 0
        for domain in self._domains(pods[0][0], required, home, now):
            inside = [(r, domain if rows is None else domain & rows) for r, rows in pods]
            found = self._within(inside, wanted, post, now)
            if found is None:
                continue
            compared += 1
            if best is None or found.cost < best.cost:
                best = found
            if compared == _COMPARED:
                break
        return best

    def _domains(
        self, record: Record, required: str, home: Sequence[int], now: float
    ) -> list[Mask]:
        """Return the domains that may take the gang, first where a pod of it seems cheapest."""
        level = Level(self._accounts.columns, required, "")
        code = level.home(home)
        codes = range(len(level.domains)) if code is None else [code]
        profile = self._profiles[record.pod.scheduler]
        evaluation = self._evaluations.of(record.spec, profile)
        bounds = self._search.bounds(record, evaluation)
        rows = np.flatnonzero(np.isfinite(bounds.highest))
        keys = self._search.keys(record, evaluation, bounds, rows, now)
        place = np.full(bounds.highest.size, np.inf)
        place[rows[np.lexsort(keys[::-1])]] = np.arange(len(rows))
        domains = [level.codes == code for code in codes]
        return sorted(domains, key=lambda mask: float(place[mask].min(initial=np.inf)))

    def _within(
        self, pods: Wanting, wanted: int, post: PostFilterPlugin, now: float
    ) -> GangLanding | None:
        """Return where so many of the pods can land on the rows that they may use.

        They are placed one after another, each where the room is or where it is cheapest to make,
        on top of what those before it took. In the end, victims that can stay beside all of them
        do.
        """
        statement = Statement(self._accounts, self._evaluations, now)
        rules = self._search.rules(pods[0][0], post, now)
        with WithoutPods(self._accounts) as trial:
            victims: list[Record] = []
            hopeless: set[ClassKey] = set()
            for number, (record, rows) in enumerate(pods):
                missing = wanted - len(statement.placed)
                if not missing or missing > len(pods) - number:
                    break
                if record.key in hopeless:
                    continue
                if not self._place(statement, trial, victims, (record, rows), post, now):
                    hopeless.add(record.key)
            placed = list(statement.placed)
            if len(placed) == wanted:
                victims = self._reprieve(rules.losses.in_order(victims), trial, placed)
            landings = [(r, r.row, r.bookings) for r in placed]
            statement.rollback()
        if len(placed) < wanted or not victims:
            return None
        violations = len(split(victims, budgets(self._accounts.objects))[0])
        return GangLanding(landings, victims, rules.losses.cost(victims, violations))

    def _place(
        self,
        statement: Statement,
        trial: WithoutPods,
        victims: list[Record],
        wanting: tuple[Record, Mask | None],
        post: PostFilterPlugin,
        now: float,
    ) -> bool:
        """Place a pod where there is room, or where victims make it; these are lifted."""
        record, rows = wanting
        profile = self._profiles[record.pod.scheduler]
        refused = statement.place(record, profile, rows)
        if refused is None:
            return True
        if refused.refusal is not None:
            return False
        found = self._search.best(record, refused, post, now, rows, victims)
        if found is None:
            return False
        for victim in found.victims:
            trial.lift(victim)
        node = self._accounts.columns.nodes[found.row]
        assert node is not None  # a row without a node has no victims
        if statement.place_on(record, profile, node.name):
            victims += found.victims
            return True
        for victim in found.victims:
            trial.put_back(victim)
        return False

    def _reprieve(
        self,
        victims: list[Record],
        trial: WithoutPods,
        placed: Sequence[Record],
    ) -> list[Record]:
        """Put back the victims that can stay beside all placed pods; returns the others."""
        going: list[Record] = []
        for unit in self._search.units.together(victims):
            rows = {row: self._accounts.devices.excess(row) for row in map(trial.row, unit)}
            for victim in unit:
                trial.put_back(victim)
            if not all(self._holds(row, excess, trial, placed) for row, excess in rows.items()):
                for victim in unit:
                    trial.lift(victim)
                going += unit
        return going

    def _holds(
        self,
        row: int,
        excess: float,
        trial: WithoutPods,
        placed: Sequence[Record],
    ) -> bool:
        """Return whether all pods placed on a row still fit there."""
        if self._accounts.devices.excess(row) > excess:
            return False
        for record in placed:
            if record.row != row:
                continue
            trial.lift(record)
            profile = self._profiles[record.pod.scheduler]
            fits = self._evaluations.of(record.spec, profile).accepts(row)
            trial.put_back(record)
            if not fits:
                return False
        return True
