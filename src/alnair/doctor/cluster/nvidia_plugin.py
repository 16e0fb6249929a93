"""Does another device plugin serve GPUs on a node with our agent?"""

from typing import Any, Final

from alnair.doctor.cluster.look import DAEMON_SETS, ClusterLook
from alnair.doctor.finding import Finding, error, ok, warning
from alnair.kube.resources import NODES, PODS, Manifest
from alnair.model import names
from alnair.model.plurals import counted

#: In the names, labels or images of DaemonSets that serve nvidia.com/gpu.
_PLUGINS: Final = ("nvidia-device-plugin", "k8s-device-plugin")
_GUIDE: Final = "docs/how-to/share-gpus-beside-nvidias-plugin.md"


async def nvidia_plugin(look: ClusterLook) -> list[Finding]:
    """On no node two device plugins serve nvidia.com/gpu, nor is it counted twice."""
    wanted = await look.agent_nodes()
    sets = await look.all(DAEMON_SETS)
    others = [one for one in sets if _serves_gpus(one)]
    uids = {one["metadata"]["uid"]: one for one in others}
    whole = _whole_gpus(sets)
    found = []
    for pod in await look.all(PODS) if others else []:
        node = pod["spec"].get("nodeName", "")
        owner = next(
            (uids[one["uid"]] for one in _owners(pod) if one["uid"] in uids and node in wanted),
            None,
        )
        if owner is not None:
            found.append(_conflict(node, owner, whole))
    for one in await look.all(NODES):
        if one["metadata"]["name"] in wanted:
            found += _counted_twice(one)
    return found or [ok("no other device plugin serves GPUs on nodes with an agent")]


def _owners(pod: Manifest) -> list[dict[str, Any]]:
    return pod["metadata"].get("ownerReferences") or []


def _serves_gpus(daemons: Manifest) -> bool:
    metadata, template = daemons["metadata"], daemons["spec"]["template"]
    if metadata["name"] == names.AGENT:
        return False
    images = [one.get("image", "") for one in template["spec"]["containers"]]
    words = [metadata["name"], *metadata.get("labels", {}).values(), *images]
    return any(sign in word for sign in _PLUGINS for word in words)


def _whole_gpus(sets: list[Manifest]) -> str:
    """What our agents were told about whole GPUs."""
    prefix = "--whole-gpus="
    for one in sets:
        if one["metadata"]["name"] == names.AGENT:
            for container in one["spec"]["template"]["spec"]["containers"]:
                for word in container.get("args", []):
                    if word.startswith(prefix):
                        return str(word.removeprefix(prefix))
    return "auto"


def _conflict(node: str, owner: Manifest, whole: str) -> Finding:
    other = f"daemonset {owner['metadata']['namespace']}/{owner['metadata']['name']}"
    where = f"node/{node}"
    if whole == "never":
        return ok(f"{other} serves whole GPUs, and our agent slices only", where)
    fix = f"kubectl label node {node} nvidia.com/gpu.deploy.device-plugin=false"
    if whole == "always":
        return error(f"{other} and our agent both serve {names.GPU}", where, fix=fix)
    text = (
        f"{other} runs beside our agent, which leaves {names.GPU} to it if it came first: say who"
        f" serves it by agent.wholeGpus ({_GUIDE})"
    )
    return warning(text, where, fix=fix)


def _counted_twice(node: Manifest) -> list[Finding]:
    """More whole GPUs than there are, as by time-slicing, or names that others give them."""
    capacity = node.get("status", {}).get("capacity", {})
    labels = node["metadata"].get("labels", {})
    count, said = labels.get("nvidia.com/gpu.count", ""), capacity.get(names.GPU, "0")
    where = f"node/{node['metadata']['name']}"
    fix = "kubectl --namespace gpu-operator get configmaps --selector app=nvidia-device-plugin"
    shared = [name for name in capacity if name.endswith(".shared") and "nvidia.com/" in name]
    if shared and capacity[shared[0]] != "0":
        text = f"{shared[0]} is served: time-slicing of another plugin knows nothing of slices"
        return [warning(text, where, fix=fix)]
    if count.isdigit() and said.isdigit() and int(said) > int(count):
        text = (
            f"{names.GPU} is {said}, and there are {counted(count, 'GPU')}: another "
            f"plugin shares them"
        )
        return [warning(text, where, fix=fix)]
    return []
