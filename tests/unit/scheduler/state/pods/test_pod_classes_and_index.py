"""Labels count where a selector sees them, and counts of pods stay true."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from alnair.model.workload import (
    LabelSelector,
    Pod,
    PodAffinity,
    PodTerm,
    Requirement,
    SpreadConstraint,
)
from alnair.scheduler.state.pods.label_selectors import matches
from alnair.scheduler.state.pods.pod_classes import Classes
from alnair.scheduler.state.pods.pod_index import PodIndex, PodQuery
from kit import make

APP = LabelSelector((Requirement("app", "Exists"),))


def labelled(name: str, **labels: str) -> Pod:
    return msgspec.structs.replace(make.pod(name), labels=tuple(sorted(labels.items())))


def test_pods_that_differ_in_labels_are_one_class_until_a_selector_sees_the_label() -> None:
    classes = Classes()
    first, second = labelled("a", app="x", index="0"), labelled("b", app="y", index="1")
    assert classes.of(first) == classes.of(second)
    spread = SpreadConstraint(1, "zone", hard=True, selector=APP)
    classes.notice(msgspec.structs.replace(make.spec(), spread=(spread,)))
    assert classes.generation == 1
    assert classes.of(first) != classes.of(second)
    assert classes.of(first).labels == (("app", "x"),)
    assert classes.of(first) is classes.of(labelled("c", app="x", index="2"))
    classes.notice(msgspec.structs.replace(make.spec(cpu=2), spread=(spread,)))
    assert classes.generation == 1, "no label counts more than before"


def test_namespaces_count_as_soon_as_there_is_a_selector() -> None:
    classes = Classes()
    term = PodTerm("zone", LabelSelector())
    classes.notice(
        msgspec.structs.replace(make.spec(), pod_affinity=PodAffinity(anti_required=(term,)))
    )
    here, there = make.pod("a"), make.pod("a", namespace="other")
    assert classes.of(here).namespace == "default"
    assert classes.of(here) != classes.of(there)


_LABELS = st.dictionaries(st.sampled_from("ab"), st.sampled_from("xy"), max_size=2)
_REQUIREMENT = st.builds(
    Requirement,
    key=st.sampled_from("ab"),
    operator=st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]),
    values=st.tuples(st.sampled_from("xy")),
)
_QUERY = st.builds(
    PodQuery,
    namespaces=st.none() | st.frozensets(st.sampled_from(["one", "two"])),
    selector=st.none() | st.builds(LabelSelector, st.lists(_REQUIREMENT, max_size=2).map(tuple)),
    skip_deleting=st.booleans(),
)
_POD = st.tuples(st.integers(0, 3), st.sampled_from(["one", "two"]), _LABELS, st.booleans())


@given(st.lists(_POD, max_size=12), st.lists(_QUERY, max_size=4), st.data())
def test_counts_are_those_of_a_scan(
    placed: list[tuple[int, str, dict[str, str], bool]],
    queries: list[PodQuery],
    data: st.DataObject,
) -> None:
    index = PodIndex()
    index.grow(4)
    here = []
    for row, namespace, labels, deleting in placed:
        pod = msgspec.structs.replace(
            make.pod("p", namespace=namespace, deleting=deleting),
            labels=tuple(sorted(labels.items())),
        )
        index.add(row, pod)
        here.append((row, pod))
        if data.draw(st.booleans()):
            gone = data.draw(st.sampled_from(here))
            here.remove(gone)
            index.add(*gone, sign=-1)
        for query in queries[: data.draw(st.integers(0, len(queries)))]:
            expected = [0.0] * 4
            for on, other in here:
                expected[on] += (
                    query.selector is not None
                    and matches(query.selector, dict(other.labels))
                    and (query.namespaces is None or other.namespace in query.namespaces)
                    and not (query.skip_deleting and other.deleting)
                )
            assert list(index.counts(query)) == expected
