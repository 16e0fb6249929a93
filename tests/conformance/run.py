"""Runs every case file of a folder and prints the pass rate per file.

Usage: python tests/conformance/run.py DIR [--json] [--min-rate PERCENT]

Ends with 0 if enough of the counted cases pass (all of them, unless --min-rate says otherwise), 1
if not, and 2 if the folder or a file in it cannot be read.
"""

import argparse
import importlib.util
import json
import os
import sys
from pathlib import Path
from typing import Any

_ROOT = Path(__file__).resolve().parents[2]
_PYTHON = _ROOT / ".venv" / "bin" / "python"
if importlib.util.find_spec("msgspec") is None:  # a Python without Alnair's packages
    if not _PYTHON.exists() or Path(sys.prefix) == _PYTHON.parents[1]:
        sys.exit("run.py: the packages of Alnair are missing: run `make install` first")
    os.execv(_PYTHON, [str(_PYTHON), *sys.argv])
sys.path[:0] = [str(_ROOT / "tests"), str(_ROOT / "src")]

from conformance.document import CaseFileError, read  # noqa: E402 - from the path just set
from conformance.judge import judge  # noqa: E402
from conformance.outcome import Outcome  # noqa: E402


def summary(folder: Path) -> dict[str, Any]:
    """Run the cases of a folder.

    Returns:
        `cases` and `passed` (numbers, of the cases that count), `by_file` (file → [passed, total]),
        `failed` (id → why), `apart` (why cases do not count → id → detail).

    Raises:
        CaseFileError: the folder or a file cannot be read.
    """
    by_file: dict[str, list[int]] = {}
    failed: dict[str, str] = {}
    apart: dict[str, dict[str, str]] = {
        o.value: {} for o in (Outcome.GATED, Outcome.COSCHEDULING_PERMIT)
    }
    for name, document in read(folder):
        passed = total = 0
        for case in document.cases:
            verdict = judge(document, case)
            if verdict.outcome.value in apart:
                apart[verdict.outcome.value][case.id] = verdict.why
                continue
            total += 1
            if verdict.outcome is Outcome.PASSED:
                passed += 1
            else:
                key = case.id if case.id not in failed else f"{case.id} ({name})"
                failed[key] = verdict.why
        by_file[name] = [passed, total]
    return {
        "cases": sum(total for _, total in by_file.values()),
        "passed": sum(passed for passed, _ in by_file.values()),
        "by_file": by_file,
        "failed": failed,
        "apart": apart,
    }


def _print(found: dict[str, Any]) -> None:
    width = max(map(len, found["by_file"]))
    for name, (passed, total) in found["by_file"].items():
        print(f"{name:{width}}  {passed:4} of {total:4}  {_rate(passed, total):5.1f} %")
    for case, why in found["failed"].items():
        print(f"FAILED {case}: {why}")
    for reason, cases in found["apart"].items():
        print(f"apart, {reason}: {len(cases)}")
    passed, total = found["passed"], found["cases"]
    print(f"{passed} of {total} cases pass, {_rate(passed, total):.1f} %")


def _rate(passed: int, total: int) -> float:
    return 100.0 * passed / total if total else 100.0


def main() -> int:
    """Run as a program."""
    parser = argparse.ArgumentParser(description="run kube-scheduler's conformance cases")
    parser.add_argument("folder", metavar="DIR", type=Path, help="folder with case files")
    parser.add_argument("--json", action="store_true", help="print one JSON document")
    parser.add_argument(
        "--min-rate",
        type=float,
        default=100.0,
        metavar="PERCENT",
        help="how many of the counted cases must pass (default: all)",
    )
    options = parser.parse_args()
    try:
        found = summary(options.folder)
    except CaseFileError as error:
        print(f"run.py: {error}", file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps(found, indent=1))
    else:
        _print(found)
    return 0 if _rate(found["passed"], found["cases"]) >= options.min_rate else 1


if __name__ == "__main__":
    sys.exit(main())
