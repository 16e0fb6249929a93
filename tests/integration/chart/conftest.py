"""Helm itself, and our chart."""

import functools
import os
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from alnair.local.errors import LocalClusterError
from alnair.local.programs.clients import client as program
from alnair.local.report import NO_REPORT

CHART = Path(__file__).parents[3] / "charts" / "alnair"
NAMESPACE = ("--namespace", "alnair-system")


@pytest.fixture(scope="module")
def helm() -> Callable[..., str]:
    try:
        path = program("helm", os.environ, NO_REPORT)
    except LocalClusterError as error:
        pytest.skip(str(error))

    def run(*arguments: str, values: str = "{}") -> str:
        """What Helm prints, or an error with what it says."""
        command = [str(path), *arguments]
        if arguments[0] != "uninstall":
            command.append("--values=-")
        result = subprocess.run(command, input=values, capture_output=True, text=True, check=False)
        if result.returncode:
            raise AssertionError(result.stderr + result.stdout)
        return result.stdout

    return run


@pytest.fixture(scope="module")
def render(helm: Callable[..., str]) -> Callable[[str], list[Any]]:
    @functools.cache
    def rendered(values: str) -> str:
        return helm("template", "alnair", str(CHART), *NAMESPACE, values=values)

    def documents(values: str) -> list[Any]:
        # By libyaml: the resources' schemas are long.
        return [one for one in yaml.load_all(rendered(values), yaml.CSafeLoader) if one]

    return documents
