"""The same node as in `test_matching_on_a_model_node`, in orders that Hypothesis looks for."""

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from kit.model_node.node import Node


class AnyOrder(RuleBasedStateMachine):
    """One rule per thing that may happen."""

    node = Node(0)

    @initialize(seed=st.integers(0, 1000), foreign=st.sampled_from((0.0, 0.5)))
    def begins(self, seed: int, foreign: float) -> None:
        self.node = Node(seed, gpus=2, foreign=foreign, mistakes=foreign > 0)

    @rule(pods=st.integers(1, 3))
    def pods_come(self, pods: int) -> None:
        for _ in range(pods):
            self.node.create()

    @rule(kubelet=st.integers(0, 4), plugin=st.integers(0, 4))
    def news_comes(self, kubelet: int, plugin: int) -> None:
        self.node.kubelet.sync(kubelet)
        self.node.plugin.watch.catch_up(plugin)

    @rule(tries=st.integers(1, 6))
    def containers_start(self, tries: int) -> None:
        for _ in range(tries):
            self.node.start_something()

    @rule()
    def a_container_ends(self) -> None:
        self.node.end_container()

    @rule(steps=st.integers(1, 4))
    def pods_end(self, steps: int) -> None:
        for _ in range(steps):
            self.node.step_end()

    @rule()
    def a_pod_is_deleted(self) -> None:
        self.node.delete()

    @rule()
    def ended_pods_go(self) -> None:
        self.node.clean_up()

    @rule(first=st.booleans(), behind=st.integers(0, 3))
    def the_kubelet_starts_again(self, first: bool, behind: int) -> None:
        self.node.kubelet.restart(plugin_is_first=first, behind=behind)

    @rule(behind=st.integers(0, 3))
    def the_plugin_starts_again(self, behind: int) -> None:
        self.node.plugin.restart(behind)
        self.node.kubelet.register()

    @rule()
    def a_gpu_fails_or_heals(self) -> None:
        self.node.fail_or_heal()

    @rule()
    def all_settles(self) -> None:
        self.node.settle()

    @invariant()
    def nothing_is_wrong(self) -> None:
        assert not self.node.judge.wrong


AnyOrder.TestCase.settings = settings(
    max_examples=60,
    stateful_step_count=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
)
test_in_any_order = AnyOrder.TestCase
