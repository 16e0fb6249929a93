"""torchrun: every worker runs an agent, and the agents find one another at the first worker.

There is no launcher: the workers are an Indexed Job, which ends with the training, while a
StatefulSet would start it again for ever. Facts of PyTorch 2.13 and 2.15.
"""

from typing import Final

from alnair.elastic.child_names import ChildNames
from alnair.elastic.horovod import DISRUPTED
from alnair.elastic.pod_templates import Manifest, gpu_limits, pod_template, workers_metadata
from alnair.model.training_job import TrainingJob

PORT: Final = 29400
#: Seconds in which an agent ends, beside the job's own grace.
_GRACE: Final = 5
#: How agents meet. They wait as long as Kubernetes takes to bring the least of them; then for the
#: last ones, which cost a pause each if they come later. Who is not heard of has gone.
_RENDEZVOUS: Final = (
    *("join_timeout=604800", "last_call_timeout=3"),
    *("keep_alive_interval=2", "keep_alive_max_attempt=3"),
)
#: An agent's exit code when it lost the store: EX_TEMPFAIL.
_LOST: Final = 75

# `torchrun`, but for how it waits for the store. By itself it looks less and less often, and who
# tries an address that is silent, that of a pod that has gone, sees a new one after three minutes
# only. What lies in the folder of the training is not its business. Where Python finds no PyTorch
# beside itself, `torchrun` must do. An agent that was told to end says nothing of where it was
# then: the last words of a log are the training's, or why it was told so.
_AGENT: Final = """\
import sys
if sys.path[0] == "":
    del sys.path[0]
import os, socket, time
first, host, port, *words = sys.argv[1:]
sys.argv = ["torchrun", *words]
try:
    from torch.distributed.elastic.multiprocessing import SignalException as Told
    from torch.distributed.elastic.rendezvous.api import RendezvousConnectionError as Lost
    from torch.distributed.run import main
except ImportError:
    os.execvp("torchrun", sys.argv)
while first == "0":
    try:
        socket.create_connection((host, int(port)), 2).close()
        break
    except OSError:
        time.sleep(0.5)
try:
    main()
except (Lost, RuntimeError) as error:
    print(f"the first worker is lost: {{error}}", file=sys.stderr)
    sys.exit({lost})
except Told:
    sys.exit(1)
"""
# The agent at the first worker holds the store, in which agents meet. If it goes, all others fail:
# they begin anew where they are, and wait for the next one. So does who fails by another's loss.
# Only what fails while the store is there has failed by itself. Which is the first worker torchrun
# would tell by names of hosts, and these differ by cluster: the index is certain. Who is told to
# end while no agent runs, or before its number is known, begins none, or tells it then.
# Ranks follow the order of the agents' addresses, as texts. Rank 0, which most trainings let write,
# is to be with the first worker: where a user looks for the log, and the one that is always there.
# So the others write theirs, which mean the same, with a colon in front, which comes after digits.
_RUN: Final = """\
first=0 ending= agent=
if [ "$JOB_COMPLETION_INDEX" = 0 ]; then first=1; fi
address=$ALNAIR_POD_IP
case $first$address in 0*:*) ;; 0*) address=::ffff:$address ;; esac
stop() {{ ending=1; if [ "$agent" ]; then kill -TERM "$agent"; fi; }}
trap stop TERM
python=$(command -v python3 || command -v python)
while [ -z "$ending" ]; do
  read -r now rest < /proc/uptime
  export ALNAIR_STARTED="${{now%%.*}}"
  "$python" -c '{agent}' "$first" {host} {port} \\
    --rdzv-conf "is_host=$first,{conf}" --local-addr "$address" "$@" &
  agent=$!
  if [ "$ending" ]; then kill -TERM "$agent"; fi
  wait "$agent"
  code=$?
  if [ "$ending" ]; then wait "$agent"; exit "$code"; fi
  agent=
  if [ "$code" = 0 ] || [ "$first" = 1 ]; then exit "$code"; fi
  if [ "$code" != {lost} ] && "$python" -c \\
    'import socket; socket.create_connection(("{host}", {port}), 5)' 2>/dev/null
  then exit "$code"; fi
  echo "the first worker is away: waiting for it to begin anew with it" >&2
  sleep 1
done
exit 143
"""
# A training that fails again and again soon after its start would be started again as often as a
# long one may change its workers. One whose program is not there would fail each time.
_GUARD: Final = """\
if ! command -v "$1" >/dev/null; then
  echo "the image has no program $1: the training is not started" >&2
  kill -TERM "$PPID"
  exit 127
fi
tries=${TORCHELASTIC_RESTART_COUNT:-0}
read -r now rest < /proc/uptime
lasted=$((${now%%.*} - ALNAIR_STARTED))
if [ "$tries" -ge 5 ] && [ "$lasted" -lt $((tries * 20)) ]; then
  echo "the training failed $tries times in $lasted s: it is not started again" >&2
  kill -TERM "$PPID"
  exit 1
fi
exec "$@"
"""
_ENV: Final = [
    # Without it a worker that comes later waits for ever: survivors keep the address of an old
    # store, and the new round never hears of it.
    {"name": "TORCH_DISABLE_SHARE_RDZV_TCP_STORE", "value": "1"},
    # By addresses agents need not wait until names of new workers are known.
    {"name": "ALNAIR_POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
]


def arguments(job: TrainingJob, children: ChildNames) -> list[str]:
    """Return the arguments of torchrun, a word each, up to the training's command."""
    return [
        f"--nnodes={job.least}:{job.most}",
        f"--nproc-per-node={job.slots}",
        f"--max-restarts={job.max_restarts}",
        "--rdzv-backend=c10d",
        f"--rdzv-endpoint={children.host(0)}:{PORT}",
        f"--rdzv-id={job.uid or job.name}",
        "--no-python",
        # Else torchrun reads the training's arguments, too, and refuses what several of its own
        # options begin with, such as `--n`.
        "--",
        *("/bin/sh", "-c", _GUARD, "training"),
        *job.command,
    ]


def workers(job: TrainingJob, children: ChildNames, size: int) -> Manifest:
    """Return the Job of the workers: the first workers stay when there are fewer."""
    grace = _GRACE + (job.elastic.scale_down_grace_seconds if job.elastic else 0)
    container: Manifest = {
        "command": ["/bin/sh", "-c", _run(children), "torchrun", *arguments(job, children)],
        "ports": [{"name": "rendezvous", "containerPort": PORT}],
        "limits": gpu_limits(job),
        "env": _ENV,
    }
    template = pod_template(
        job,
        children,
        "worker",
        job.workers,
        container,
        in_group=True,
        restartPolicy="Never",
        subdomain=children.service,
        terminationGracePeriodSeconds=grace,
    )
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": workers_metadata(job, children),
        "spec": {
            "completionMode": "Indexed",
            # Both change together: so a Job is made larger or smaller while it runs.
            "parallelism": size,
            "completions": size,
            # The agent with the store waits for all others: with its end the training has ended.
            # Who came too late to take part would never end.
            "successPolicy": {"rules": [{"succeededIndexes": "0"}]},
            "backoffLimitPerIndex": job.run.backoff_limit,
            "maxFailedIndexes": 0,
            # What is drained, preempted or lost with its node is no failure of the training.
            "podFailurePolicy": {"rules": [{"action": "Ignore", **DISRUPTED}]},
            "template": template,
        },
    }


def _run(children: ChildNames) -> str:
    return _RUN.format(
        agent=_AGENT.format(lost=_LOST),
        conf=",".join(_RENDEZVOUS),
        host=children.host(0),
        port=PORT,
        lost=_LOST,
    )
