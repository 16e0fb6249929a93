"""The real kube-scheduler as a judge: which nodes all of its default filters let through.

It asks an extender of ours about the nodes that passed its own plugins. The extender writes them
down and refuses them all, so nothing is ever bound. Where no node passed it is not asked; the pod's
condition then says so.

To learn scores, the extender lets the nodes pass, and refuses to bind. kube-scheduler logs what
each plugin gave each node.
"""

import http.server
import json
import re
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import yaml

#: What the extender says of every node.
REFUSAL: Final = "only recorded"
#: Flags with which kube-scheduler logs scores.
SCORES_LOGGED: Final = ("--vmodule=schedule_one*=10",)
_SCORED: Final = re.compile(
    r'"Plugin scored node for pod" pod="(?P<pod>[^"]+)" plugin="(?P<plugin>\w+)" '
    r'node="(?P<node>[^"]+)" score=(?P<score>-?\d+)'
)


class Extender:
    """A scheduler extender on loopback that records and refuses.

    Attributes:
        passed: for each pod's uid, the nodes that passed the last time.
        lets_pass: it does not refuse nodes but binding.
    """

    def __init__(self) -> None:
        self.passed: dict[str, frozenset[str]] = {}
        self.lets_pass = False
        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def write_config(self, path: Path, kubeconfig: Path, scheduler: str) -> None:
        """Write a configuration for kube-scheduler under which it asks this extender.

        Args:
            path: of the file.
            kubeconfig: of kube-scheduler.
            scheduler: the scheduler name of the pods that are to be judged.
        """
        config = {
            "apiVersion": "kubescheduler.config.k8s.io/v1",
            "kind": "KubeSchedulerConfiguration",
            "clientConnection": {"kubeconfig": str(kubeconfig), "qps": 1000, "burst": 2000},
            "leaderElection": {"leaderElect": False},
            "percentageOfNodesToScore": 100,
            "profiles": [
                {
                    "schedulerName": scheduler,
                    # It must not evict the pods of the cluster to make room.
                    "plugins": {"postFilter": {"disabled": [{"name": "*"}]}},
                }
            ],
            "extenders": [
                {
                    "urlPrefix": f"http://127.0.0.1:{self._server.server_port}",
                    "filterVerb": "filter",
                    "bindVerb": "bind",
                    "nodeCacheCapable": True,
                }
            ],
        }
        path.write_text(yaml.safe_dump(config))

    def _filter(self, asked: dict[str, Any]) -> dict[str, Any]:
        names = frozenset(asked.get("NodeNames") or ())
        self.passed[asked["Pod"]["metadata"]["uid"]] = names
        if self.lets_pass:
            return {"NodeNames": sorted(names)}
        return {"NodeNames": [], "FailedNodes": dict.fromkeys(names, REFUSAL)}

    def _bind(self, asked: dict[str, Any]) -> dict[str, Any]:
        return {"Error": REFUSAL}

    def _handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        answers = {"/filter": self._filter, "/bind": self._bind}

        class Handler(http.server.BaseHTTPRequestHandler):
            # Connections stay open, as kube-scheduler asks hundreds of times.
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                answer = json.dumps(answers[self.path](asked)).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                pass

        return Handler


def scores(log: str, pod: str) -> dict[str, dict[str, int]]:
    """Return what each plugin gave each node the last time, weighted.

    Args:
        log: of kube-scheduler.
        pod: `NAMESPACE/NAME`.
    """
    found: dict[str, dict[str, int]] = {}
    for line in _SCORED.finditer(log):
        if line["pod"] == pod:
            found.setdefault(line["plugin"], {})[line["node"]] = int(line["score"])
    return found
