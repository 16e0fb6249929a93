"""Classes of waiting pods compared with nodes at once."""

import numpy as np
import pytest

from alnair.model.workload import PodSpec
from alnair.scheduler.framework.extension_points import QuickPlugin
from alnair.scheduler.placement import class_needs
from alnair.scheduler.placement.class_needs import ClassNeeds
from alnair.scheduler.plugins.gpu_share.plugin import GpuShare
from alnair.scheduler.plugins.node_resources_fit.plugin import FitArguments, NodeResourcesFit
from alnair.scheduler.state.accounts import Accounts
from kit import make

BOTH: tuple[QuickPlugin, ...] = (NodeResourcesFit(), GpuShare())


def fitting(accounts: Accounts, *specs: PodSpec, plugins: tuple[QuickPlugin, ...] = BOTH) -> str:
    """Return one word per class: an x for each node that has what it needs, a dot for others."""
    needs = ClassNeeds(accounts.cluster)
    for number, spec in enumerate(specs):
        needs.put(number, spec, plugins)
    there = needs.there(slice(0, accounts.columns.n))
    found = needs.fitting(np.arange(len(specs)), there)
    assert there.shape == (needs.count, accounts.columns.n)
    within = needs.within(np.arange(len(specs)), there.max(axis=1, initial=-np.inf))
    assert set(np.flatnonzero(found.any(axis=1))) <= set(within)
    everyone = needs.within(slice(0, len(specs)), there.max(axis=1, initial=-np.inf))
    assert within.tolist() == everyone.tolist()
    for row in range(accounts.columns.n):
        beyond = needs.beyond(there[:, row])[: len(specs)]
        assert beyond.tolist() == (~found[:, row]).tolist()
    return " ".join("".join(".x"[int(fits)] for fits in row) for row in found)


def test_each_class_is_compared_with_each_node() -> None:
    accounts = Accounts()
    accounts.put_node(make.node("a", cpu=1000))
    accounts.put_node(make.node("b", cpu=2000))
    sizes = [make.spec(cpu=cpu) for cpu in (1000, 2000, 3000, 0)]
    assert fitting(accounts, *sizes) == "xx .x .. xx"


def test_gpus_are_compared_by_what_one_has_most_of_and_by_model() -> None:
    accounts = Accounts()
    accounts.put_node(make.node("a", gpus=1, model="A100", gpu_memory=40_960))
    accounts.put_node(make.node("b", gpus=2, model="T4", gpu_memory=16_384))
    asked = [
        make.spec(whole=2),
        make.spec(whole=1, models="A100"),
        make.spec(slice_mib=20_000, compute=50),
        make.spec(slice_mib=20_000, models_not="A100"),
        make.spec(slice_mib=64, compute=100),
    ]
    assert fitting(accounts, *asked) == ".x x. x. .. xx"


def test_resources_that_are_ignored_do_not_count() -> None:
    accounts = Accounts()
    accounts.put_node(make.node())
    asked = make.spec(extended={"x.com/w": 1})
    assert fitting(accounts, asked) == "."
    lenient = NodeResourcesFit(FitArguments(ignored_resources=("x.com/w",)))
    assert fitting(accounts, asked, plugins=(lenient,)) == "x"


def test_another_class_gets_the_number_of_one_that_is_gone() -> None:
    accounts = Accounts()
    accounts.put_node(make.node(cpu=1000))
    needs = ClassNeeds(accounts.cluster)
    needs.put(0, make.spec(cpu=2000, extended={"x.com/w": 1}), BOTH)
    needs.put(0, make.spec(cpu=1000), BOTH)
    assert needs.fitting(np.array([0]), needs.there(slice(0, 1))).all()


def test_amounts_beyond_the_most_that_are_compared_refuse_nobody(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(class_needs, "_MOST_AMOUNTS", 2)
    accounts = Accounts()
    accounts.put_node(make.node(cpu=1000))
    asked = make.spec(cpu=1000), make.spec(cpu=1000, extended={"x.com/w": 1})
    assert fitting(accounts, *asked) == "x x"


def test_without_nodes_nobody_fits_and_without_plugins_everybody() -> None:
    accounts = Accounts()
    assert fitting(accounts, make.spec(cpu=1)) == ""
    accounts.put_node(make.node(cpu=0))
    assert fitting(accounts, make.spec(cpu=1), plugins=()) == "x"
