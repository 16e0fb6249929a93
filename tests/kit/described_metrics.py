"""Metrics as a user knows them: name, type, labels, help."""

from collections.abc import Iterator

from prometheus_client.parser import text_string_to_metric_families


def described(text: str) -> list[str]:
    """One line per family of the text format, sorted; what the process itself is left out."""
    return sorted(_lines(text))


def _lines(text: str) -> Iterator[str]:
    for family in text_string_to_metric_families(text):
        name = family.name + ("_total" if family.type == "counter" else "")
        labels = sorted({label for sample in family.samples for label in sample.labels})
        if not name.startswith("process_"):
            yield "\t".join((name, family.type, ",".join(labels), family.documentation))
