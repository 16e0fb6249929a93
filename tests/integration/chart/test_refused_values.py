"""Which values of the chart Helm refuses, and that it refuses no others."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import yaml

from alnair.configuration.profile_assembly import assemble
from alnair.configuration.scheduler_file import Configuration, dump

from .conftest import CHART, NAMESPACE

PROFILE = "at '/scheduler/configuration/profiles/0"


def profile(fields: str) -> str:
    """Values with a profile that has these fields."""
    return f"scheduler: {{configuration: {{profiles: [{{schedulerName: a, {fields}}}]}}}}"


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ("{agent: {polcy: warn}}", "at '/agent': additional properties 'polcy' not allowed"),
        ("{agent: {policy: kill}}", "at '/agent/policy': value must be one of 'warn'"),
        ("{scheduler: {replicas: two}}", "at '/scheduler/replicas': got string, want integer"),
        ("{agent: {mps: {percent: 0}}}", "at '/agent/mps/percent'"),
        ("{priorityClasses: [{name: a}]}", "missing property 'value'"),
        ("{agent: {idleAfter: 10min}}", "at '/agent/idleAfter': '10min' does not match pattern"),
        ("{controller: {history: {keep: 6 months}}}", "at '/controller/history/keep'"),
        ("{controller: {idleEviction: {after: 1hour}}}", "at '/controller/idleEviction/after'"),
        ("{image: {registry: https://registry.example}}", "at '/image/registry'"),
        ("{image: {tag: 'alnair:v1'}}", "at '/image/tag'"),
        ("{agent: {image: {digest: abc}}}", "at '/agent/image/digest'"),
        ("{agent: {driver: {libraries: usr/lib}}}", "at '/agent/driver/libraries'"),
        (
            "{scheduler: {configuration: {profils: []}}}",
            "at '/scheduler/configuration': additional properties 'profils' not allowed",
        ),
        (
            "{scheduler: {configuration: {profiles: [{schedulerName: a, plugin: {}}]}}}",
            "at '/scheduler/configuration/profiles/0': additional properties 'plugin' not allowed",
        ),
        (
            "{scheduler: {configuration: {backfill: {enabled: 'no'}}}}",
            "at '/scheduler/configuration/backfill/enabled': got string, want boolean",
        ),
        (
            "{scheduler: {configuration: {backfill: {patience: 5 minutes}}}}",
            "at '/scheduler/configuration/backfill/patience': '5 minutes' does not match pattern",
        ),
        (profile("like: alnair"), f"{PROFILE}/like': value must be one of ''"),
        (
            profile("plugins: {enabled: [{name: GpuShares}]}"),
            f"{PROFILE}/plugins/enabled/0/name': value must be one of 'DefaultPreemption'",
        ),
        (
            profile("plugins: {disabled: [{name: '**'}]}"),
            f"{PROFILE}/plugins/disabled/0/name': value must be one of '*'",
        ),
        (
            profile("pluginConfig: [{name: NodeResourcesFit, args: {scoringStrategie: {}}}]"),
            f"{PROFILE}/pluginConfig/0/args': additional properties 'scoringStrategie' not allowed",
        ),
        (
            profile("pluginConfig: [{name: NodeName, args: {some: 1}}]"),
            f"{PROFILE}/pluginConfig/0/args'",
        ),
        ("{sheduler: {}}", "additional properties 'sheduler' not allowed"),
    ],
)
def test_values_that_cannot_be_meant_are_refused_by_name(
    helm: Callable[..., str], values: str, said: str
) -> None:
    with pytest.raises(AssertionError, match=said.replace("(", r"\(")):
        helm("template", "alnair", str(CHART), *NAMESPACE, values=values)


def test_helm_takes_all_that_the_scheduler_says_of_its_profiles(
    render: Callable[[str], list[Any]],
) -> None:
    configuration = Configuration()
    spelt = assemble(configuration, "here").explicit()
    full = yaml.safe_load(dump(msgspec.structs.replace(configuration, profiles=spelt)))
    assert render(yaml.safe_dump({"scheduler": {"configuration": full}}))
