"""`alnair profile pair --suite`: six workloads in all pairs, and whom to put together."""

from typing import TYPE_CHECKING

import msgspec
import typer

from alnair.cli.json_output import write_json
from alnair.cli.profile.measured_gpu import MeasuredGpu, checked_model, limits, measured_gpu, shared
from alnair.cli.profile.pair_options import SharingOptions, TableOptions, TimeOptions
from alnair.cli.profile.pair_output import keep, name_of

if TYPE_CHECKING:
    from alnair.cli.progress import Display
    from alnair.model.pair_rates import PairRates
    from alnair.profiler.packing import Packing


class SuiteResult(msgspec.Struct, frozen=True):
    """What the suite found on one GPU.

    Attributes:
        table: What the table is called.
        rates: It, with all that a file had before.
        packing: What follows from it.
        rounds: How often everything was measured.
    """

    table: str
    rates: "PairRates"
    packing: "Packing"
    rounds: int


def run_suite(
    there: MeasuredGpu | None,
    sharing: SharingOptions,
    times: TimeOptions,
    table: TableOptions,
    *,
    json: bool,
) -> None:
    """Measure the suite on a cluster's GPU, the one here, or each fake one; show the findings."""
    from alnair.cli.progress import Display
    from alnair.cli.text import pair_table
    from alnair.cli.text.console import console

    fakes: list[str | None] = [*sharing.fake_gpu] if sharing.fake_gpu else [None]
    if len(fakes) > 1 and (table.model or table.heat_map):
        which = "--model" if table.model else "--heat-map"
        raise typer.BadParameter("goes with one GPU alone", param_hint=which)
    if len(set(limits(sharing))) > 1:
        raise typer.BadParameter("the suite gives each the same share", param_hint="--limits")
    kinds = _kinds(table.kinds)
    results = []
    with Display() as display:
        for fake in fakes:
            found = _measured(fake, there, kinds, sharing, times, table, display)
            pair_table.show(found.table, found.rates, found.packing, console(json=json, wide=True))
            results.append(found)
    if json:
        write_json(results)


def _measured(
    fake: str | None,
    there: MeasuredGpu | None,
    kinds: tuple[str, ...],
    sharing: SharingOptions,
    options: TimeOptions,
    table: TableOptions,
    display: "Display",
) -> SuiteResult:
    """Measure the suite on one GPU."""
    from alnair.node.pairing import suite
    from alnair.node.pairing.measuring import Times, rates
    from alnair.profiler.packing import packing
    from alnair.profiler.pair_speeds import summarise

    with measured_gpu(fake, there, sharing, display) as gpu:
        needed = table.out is not None
        name = name_of(checked_model(table.model, gpu), sharing.mode, needed=needed)
        command = suite.command_in_container if gpu.measure else suite.command
        commands = {kind: shared(command(kind), gpu, sharing, 0) for kind in kinds}

        def tell(what: str, done: int, total: int) -> None:
            display.progress(f"the suite on {name}", done, total)

        times = Times(options.warm_up, options.seconds)
        measure = gpu.measure or rates
        rounds = suite.rounds_of_all(commands, times, options.rounds, tell, measure)
    found = {pair: summarise(each) for pair, each in rounds.items() if each}
    grown = keep(table, name, found)
    return SuiteResult(name, grown, packing(grown, tuple(rounds)), options.rounds)


def _kinds(wanted: str | None) -> tuple[str, ...]:
    """Return the workloads that are wanted."""
    from alnair.model.near_names import near
    from alnair.node.pairing.suite import KINDS

    if wanted is None:
        return KINDS
    found = tuple(dict.fromkeys(part.strip() for part in wanted.split(",")))
    for kind in found:
        if kind not in KINDS:
            close = near(kind, KINDS, 1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(KINDS)}"
            raise typer.BadParameter(
                f"the suite has no workload {kind!r}: {hint}", param_hint="--kinds"
            )
    return found
