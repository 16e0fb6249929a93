"""`alnair simulate`: the production decision code on a virtual clock; one module per command."""

import typer

from alnair.cli.simulate.cluster import cluster
from alnair.cli.simulate.placement import placement
from alnair.cli.simulate.whatif import whatif

app = typer.Typer(no_args_is_help=True)


@app.callback()
def simulate() -> None:
    """Try the scheduler on recorded or invented work, without touching a cluster.

    Decisions come from the code that schedules live clusters; time is virtual.

    Examples:
      alnair simulate cluster philly --nodes 60x8xV100 --report out/
      alnair simulate whatif --from-cluster --submit train.yaml
      alnair simulate placement --profile alnair-in-order
    """


app.command("cluster")(cluster)
app.command("placement")(placement)
app.command("whatif")(whatif)
