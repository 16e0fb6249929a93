"""The figures of one moment, as `alnair top` shows and writes them.

None is "not known", never 0: a node without an agent, a driver that does not say it, an agent that
is silent.
"""

import msgspec

from alnair.model.job_facts import CudaCalls, InputFacts, ModelFacts


class GpuUse(msgspec.Struct, frozen=True):
    """A GPU.

    Attributes:
        node: Of the node.
        index: On the node.
        uuid: As the driver names it.
        model: Of the GPU.
        util: Percent of time in which kernels ran.
        memory_used_mib: In use.
        memory_mib: That there are.
        pods: Who holds it or a part of it, as namespace/name.
        problem: Why nothing may start on it, or why its figures are not known.
    """

    node: str
    index: int
    uuid: str
    model: str
    memory_mib: int
    util: float | None = None
    memory_used_mib: int | None = None
    pods: tuple[str, ...] = ()
    problem: str = ""


class NodeUse(msgspec.Struct, frozen=True):
    """A node with GPUs.

    Attributes:
        node: Its name.
        gpus: How many it has.
        free: How many of them nobody holds, not even in part.
        util: Mean over its GPUs, percent.
        memory_used_mib: In use, of all its GPUs.
        memory_mib: That they have.
        pods: Pods that hold GPUs.
        problem: Why its figures are not known, what is wrong with it, or that it is cordoned.
    """

    node: str
    gpus: int
    free: int
    util: float | None
    memory_used_mib: int | None
    memory_mib: int
    pods: int
    problem: str = ""


class PodUse(msgspec.Struct, frozen=True):
    """A pod that holds GPUs.

    Attributes:
        namespace: Of the pod.
        pod: Its name.
        node: Where it runs.
        owner: Its training job, or its controller, as Kind/name; its own name where it has none.
        gpus: Whole GPUs and parts that it holds, added up; a part by compute, else by memory.
        util: Percent of its GPUs' compute that it uses: a slice of 30 % that always computes, 30.
        used_gpus: The same in GPUs: 0.3.
        memory_mib: GPU memory that it uses.
        cpu_cores: CPUs that it uses.
        ram_mib: Memory that it uses.
        idle_s: Seconds for which its GPUs have been idle; None while they are not.
        phase: What it does, such as training.
        progress: Part that is done, 0 to 1.
        eta_s: Seconds until it is done.
        is_live: Whether its agent said so just now; else it is from the pod's annotation.
        type: Such as inference.
        model: What it trains or serves.
        input: What it reads.
        cuda: Which calls of CUDA it makes.
    """

    namespace: str
    pod: str
    node: str
    owner: str
    gpus: float
    util: float | None = None
    used_gpus: float | None = None
    memory_mib: float | None = None
    cpu_cores: float | None = None
    ram_mib: float | None = None
    idle_s: float | None = None
    phase: str | None = None
    progress: float | None = None
    eta_s: float | None = None
    is_live: bool = False
    type: str | None = None
    model: ModelFacts | None = None
    input: InputFacts | None = None
    cuda: CudaCalls | None = None


class OwnerUse(msgspec.Struct, frozen=True):
    """The pods of one controller.

    Attributes:
        namespace: Of the pods.
        owner: As Kind/name.
        pods: How many hold GPUs now.
        gpus: That they hold.
        used_gpus: Of these, as far as it is known; None if it is of none.
        wasted_gpus: GPUs that pods hold and do not use, of pods of which it is known.
    """

    namespace: str
    owner: str
    pods: int
    gpus: float
    used_gpus: float | None
    wasted_gpus: float | None


class ClusterUse(msgspec.Struct, frozen=True):
    """All of it.

    Attributes:
        v: 1.
        nodes: Those with GPUs, by name.
        gpus: By node and index.
        pods: By namespace and name.
        owners: Likewise.
        notes: What could not be asked, and why: for people.
    """

    v: int
    nodes: tuple[NodeUse, ...]
    gpus: tuple[GpuUse, ...]
    pods: tuple[PodUse, ...]
    owners: tuple[OwnerUse, ...]
    notes: tuple[str, ...] = ()
