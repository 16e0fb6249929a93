"""What becomes of measured pairs: the table that grows by them, and its picture."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

import typer

from alnair.cli.profile.pair_options import TableOptions

if TYPE_CHECKING:
    from alnair.model.pair_rates import PairRates
    from alnair.profiler.pair_speeds import PairSpeeds


def check_files(table: TableOptions) -> None:
    """Refuse, before anything is measured, what could not be kept afterwards."""
    for path, option in ((table.out, "--out"), (table.heat_map, "--heat-map")):
        if path is not None and not path.absolute().parent.is_dir():
            raise typer.BadParameter(f"there is no folder {path.parent}", param_hint=option)
    if table.out is not None and table.out.exists():
        from alnair.traces import pair_tables

        try:
            pair_tables.load(table.out)
        except pair_tables.PairTableError as error:
            raise typer.BadParameter(str(error), param_hint="--out") from None
    if table.heat_map is None:
        return
    if table.heat_map.suffix not in (".svg", ".png"):
        raise typer.BadParameter(
            f"{table.heat_map} ends with neither .svg nor .png", param_hint="--heat-map"
        )
    import alnair.history.report.pair_heat_map  # noqa: F401 - a missing package is told now


def two_kinds(table: TableOptions) -> tuple[str, str]:
    """Return what the two are called; a table needs names."""
    if table.kinds is None:
        if table.out is not None:
            raise typer.BadParameter("a table needs the names of the two", param_hint="--kinds")
        return "first", "second"
    first, comma, second = (part.strip() for part in table.kinds.partition(","))
    if not (first and comma and second) or "," in second:
        raise typer.BadParameter(f"{table.kinds!r} are not two names: A,B", param_hint="--kinds")
    return first, second


def name_of(model: str, mode: str, *, needed: bool) -> str:
    """Return what the table is called."""
    from alnair.model.pair_rates import table_name

    if needed and not model:
        raise typer.BadParameter(
            "no driver says which GPU this is: say it, for the table", param_hint="--model"
        )
    return table_name(model or "this GPU", mode)


def keep(
    table: TableOptions, name: str, found: "Mapping[tuple[str, str], PairSpeeds]"
) -> "PairRates":
    """Add pairs to the table of this name, if there is a file; draw it, if that is wanted."""
    from alnair.profiler.pair_tables import with_pair
    from alnair.traces import pair_tables

    # Read again: another one may have added to it meanwhile.
    tables = pair_tables.load(table.out) if table.out and table.out.exists() else {}
    grown = tables.get(name)
    for kinds, speeds in found.items():
        grown = with_pair(grown, kinds, speeds)
    assert grown is not None
    if table.out is not None:
        pair_tables.save(table.out, {**tables, name: grown})
    if table.heat_map is not None:
        from alnair.history.report.pair_heat_map import heat_map

        kind = table.heat_map.suffix[1:]
        table.heat_map.write_bytes(heat_map(grown, f"{name}: speed beside one another", kind))
    return grown
