"""`alnair resume`: a suspended training job goes on."""

from typing import Annotated

from alnair.cli.cluster_selection import ClusterOptions
from alnair.cli.json_output import json_option
from alnair.cli.option_groups import grouped
from alnair.cli.training.job_argument import JobName, Namespace, Timeout
from alnair.cli.training.suspension import Wait, become


@grouped
def resume(
    *,
    job: JobName,
    wait: Wait = False,
    timeout: Timeout = 300.0,
    namespace: Namespace = None,
    cluster: ClusterOptions,
    json: Annotated[bool, json_option("the job")] = False,
) -> None:
    """Have a suspended training job go on, from what it has saved.

    It begins as a new job does: as soon as there is room for its minimum.

    Ends with 0, 1 if it cannot be so, 2 on wrong usage, 3 if the cluster cannot be reached.

    Examples:
      alnair resume mnist --wait
      alnair resume etj/llama -n team-a
    """
    become(cluster, namespace, job, suspended=False, seconds=timeout if wait else None, json=json)
