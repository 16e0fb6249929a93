"""The real kube-scheduler as a judge: which nodes all of its default filters let through.

It asks an extender of ours about the nodes that passed its own plugins. The extender writes them
down and refuses them all, so nothing is ever bound. Where no node passed it is not asked; the pod's
condition then says so.
"""

import http.server
import json
import threading
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Self

import yaml

#: What the extender says of every node.
REFUSAL: Final = "only recorded"


class Extender:
    """A scheduler extender on loopback that records and refuses.

    Attributes:
        passed: for each pod's uid, the nodes that passed the last time.
    """

    def __init__(self) -> None:
        self.passed: dict[str, frozenset[str]] = {}
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
                    "nodeCacheCapable": True,
                }
            ],
        }
        path.write_text(yaml.safe_dump(config))

    def _handler(self) -> type[http.server.BaseHTTPRequestHandler]:
        passed = self.passed

        class Handler(http.server.BaseHTTPRequestHandler):
            # Connections stay open, as kube-scheduler asks hundreds of times.
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                asked: dict[str, Any] = json.loads(
                    self.rfile.read(int(self.headers["Content-Length"]))
                )
                names = frozenset(asked.get("NodeNames") or ())
                passed[asked["Pod"]["metadata"]["uid"]] = names
                answer = json.dumps(
                    {"NodeNames": [], "FailedNodes": dict.fromkeys(names, REFUSAL)}
                ).encode()
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None:
                pass

        return Handler
