"""`alnair suspend`: a training job gives back all that it holds."""

from typing import Annotated

from alnair.cli.cluster_selection import ClusterOptions
from alnair.cli.json_output import json_option
from alnair.cli.option_groups import grouped
from alnair.cli.training.job_argument import JobName, Namespace, Timeout
from alnair.cli.training.suspension import Wait, become


@grouped
def suspend(
    *,
    job: JobName,
    wait: Wait = False,
    timeout: Timeout = 300.0,
    namespace: Namespace = None,
    cluster: ClusterOptions,
    json: Annotated[bool, json_option("the job")] = False,
) -> None:
    """Have a training job give back its GPUs and all else that it holds.

    Its pods end; the job, and what it has saved, stay. What it has not saved is lost.

    Ends with 0, 1 if it cannot be so, 2 on wrong usage, 3 if the cluster cannot be reached.

    Examples:
      alnair suspend mnist --wait
      alnair suspend etj/llama -n team-a
    """
    become(cluster, namespace, job, suspended=True, seconds=timeout if wait else None, json=json)
