"""The kubelet's page of a real node, read as the agent reads it, with a right or without one."""

import asyncio
import json
import sys
import uuid
from pathlib import Path
from typing import Any

from alnair.kube.client import Client
from alnair.kube.resources import CLUSTER_ROLE_BINDINGS, CLUSTER_ROLES, SERVICE_ACCOUNTS
from alnair.local.controlplane import LocalCluster
from kit.live.agent_in_node import run_in_node

#: What the chart gives the agents with `agent.kubeletPage.enabled`.
RIGHT = {"apiGroups": [""], "resources": ["nodes/metrics"], "verbs": ["get"]}
_PROGRAM = """
import json, sys
from pathlib import Path
from alnair.node.cgroups import Proc
from alnair.node.pods.kubelet_page import KubeletPage
url, token, pod = sys.argv[1:]
page = KubeletPage(url, Proc(), Path(token))
found = page.read()
containers = found.containers.items() if found is not None else ()
mine = {key.container: (one.cpu_ns, one.memory_bytes) for key, one in containers if key.pod == pod}
print(json.dumps({"problem": page.problem, "containers": mine}))
"""


class KubeletPages:
    """Asked in the node, by an account of its own.

    Args:
        cluster: Has the node.
        address: Of the kubelet.
        folder: Of the account's token.
    """

    def __init__(self, cluster: LocalCluster, address: str, folder: Path) -> None:
        self._cluster = cluster
        self._url = f"https://{address}:10250/metrics/cadvisor"
        self._token = folder / "token"

    async def sign_up(self, client: Client, *rules: object) -> None:
        """Be an account with these rights."""
        name = f"reads-{uuid.uuid4().hex[:6]}"
        metadata = {"name": name}
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata}
        await client.create(SERVICE_ACCOUNTS, account, "default")
        group = "rbac.authorization.k8s.io"
        kind = {"apiVersion": f"{group}/v1", "metadata": metadata}
        role = {"apiGroup": group, "kind": "ClusterRole", "name": name}
        subject = {"kind": "ServiceAccount", "name": name, "namespace": "default"}
        await client.create(CLUSTER_ROLES, {**kind, "kind": "ClusterRole", "rules": list(rules)})
        await client.create(
            CLUSTER_ROLE_BINDINGS,
            {**kind, "kind": "ClusterRoleBinding", "roleRef": role, "subjects": [subject]},
        )
        made: Any = await client.create(
            SERVICE_ACCOUNTS,
            {"spec": {"expirationSeconds": 600}},
            "default",
            name=name,
            subresource="token",
        )
        self._token.write_text(made["status"]["token"])
        authority = self._cluster.pki.ca.certificate
        self._token.with_name("ca.crt").write_bytes(authority.read_bytes())

    async def of(self, pod: str) -> tuple[str, dict[str, list[int]]]:
        """Return why it cannot be read, and container → (ns of CPU, bytes) of a pod, by its uid."""
        said = await asyncio.to_thread(
            run_in_node,
            self._cluster,
            *(sys.executable, "-c", _PROGRAM, self._url, str(self._token), pod),
        )
        found = json.loads(said)
        return found["problem"], found["containers"]
