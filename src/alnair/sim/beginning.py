"""From inputs and a scheduler's configuration to a simulation that can begin."""

from collections.abc import Callable, Sequence

from msgspec.structs import replace

from alnair.configuration import scheduler_file
from alnair.configuration.profile_assembly import find_profile
from alnair.model.pair_rates import PairTables
from alnair.scheduler.framework.extension_points import Profile
from alnair.sim.elastic import FairPlan
from alnair.sim.inputs import Loaded
from alnair.sim.interference import measured
from alnair.sim.simulation import Simulation, SimulationOptions


def begin(
    found: Loaded,
    configuration: scheduler_file.Configuration,
    profiles: Sequence[Profile],
    options: SimulationOptions,
    *,
    interference: bool,
    pairs: PairTables | None = None,
    elastic: bool = True,
    timer: Callable[[], float],
) -> Simulation:
    """Return the simulation of what was read.

    Args:
        found: What was read.
        configuration: Of the scheduler; says whether and when nodes are reserved.
        profiles: Of the configuration.
        options: How to simulate; `loads` and `patience` follow from the configuration.
        interference: Jobs that share a GPU slow one another down, as was measured.
        pairs: Further measured pairs; None = those that ship.
        elastic: A plan says how many pods elastic jobs have; else they have what they ask for.
        timer: Seconds of real time, from anywhere.

    Raises:
        UnknownProfileError: The options name a profile that there is not.
    """
    if options.profile:
        used = {find_profile(profiles, options.profile).scheduler}
    else:
        used = {pod.scheduler for job in found.scenario.jobs for pod in job.pods}
    backfill = configuration.backfill
    options = replace(
        options,
        loads=any(each.reads_loads for each in profiles if each.scheduler in used),
        patience=scheduler_file.seconds(backfill.patience) if backfill.enabled else None,
    )
    return Simulation(
        found.scenario,
        profiles,
        options,
        interference=measured(pairs) if interference else None,
        elastic=FairPlan() if elastic else None,
        timer=timer,
        source=found.source,
    )
