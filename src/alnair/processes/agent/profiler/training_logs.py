"""What the logs of this node's pods say of their trainings; only numbers are kept."""

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

import msgspec

from alnair.kube.timestamps import timestamp
from alnair.node.pods.container_logs import ContainerLogs
from alnair.profiler.logs.log_reader import LogFindings, LogReader
from alnair.profiler.logs.model_size import ModelSize

if TYPE_CHECKING:
    from alnair.profiler.logs.user_pattern import UserPattern

#: Containers of a pod whose logs are read, at most.
_MOST: Final = 8

_log = logging.getLogger(__name__)


class LoggedPod(msgspec.Struct, frozen=True):
    """A pod whose log may be read.

    Attributes:
        namespace: Of the pod.
        name: Its name.
        group: Its uid as the kubelet knows it.
        containers: Their names.
        pattern: Of its lines; empty for all known formats.
    """

    namespace: str
    name: str
    group: str
    containers: tuple[str, ...]
    pattern: str = ""


class TrainingLogs:
    """Reads on, and tells what was said so far.

    Args:
        logs: Of this node's containers.
    """

    def __init__(self, logs: ContainerLogs) -> None:
        self._logs = logs
        self._readers: dict[tuple[str, str], LogReader] = {}
        self._patterns: dict[str, UserPattern | None] = {}

    def keep(self, groups: Iterable[str]) -> None:
        """Forget all pods but those with these uids."""
        kept = set(groups)
        self._logs.keep(kept)
        self._readers = {key: one for key, one in self._readers.items() if key[0] in kept}
        if not self._readers:
            self._patterns.clear()

    def read(self, pod: LoggedPod) -> LogFindings | None:
        """Return what the container says that says most of a training; None: none says anything.

        What another one says of the model is told with it.
        """
        found = [self._container(pod, name) for name in pod.containers[:_MOST]]
        telling = [one for one in found if one.readings or one.model != ModelSize()]
        if not telling:
            return None
        most = max(telling, key=lambda one: one.readings)
        model = next(
            (one.model for one in (most, *telling) if one.model != ModelSize()), most.model
        )
        return msgspec.structs.replace(most, model=model)

    def _container(self, pod: LoggedPod, name: str) -> LogFindings:
        reader = self._readers.get((pod.group, name))
        if reader is None:
            reader = self._readers[pod.group, name] = LogReader(self._pattern(pod))
        for written in self._logs.read(pod.namespace, pod.name, pod.group, name):
            reader.feed(written.data, timestamp(written.at) or None)
        return reader.findings()

    def _pattern(self, pod: LoggedPod) -> "UserPattern | None":
        if not pod.pattern:
            return None
        if pod.pattern not in self._patterns:
            from alnair.profiler.logs.linear_pattern import PatternError
            from alnair.profiler.logs.user_pattern import UserPattern

            try:
                self._patterns[pod.pattern] = UserPattern(pod.pattern)
            except PatternError as error:
                title = f"pod {pod.namespace}/{pod.name}"
                _log.warning("%s: its log pattern is not used: %s", title, error)
                self._patterns[pod.pattern] = None
        return self._patterns[pod.pattern]
