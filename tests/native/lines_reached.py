"""`make coverage-native`: which lines of the C library the native tests reach; fails below 90 %."""

import gzip
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1])]

from native import parts  # noqa: E402  (found by the line above)
from native.build import ROOT  # noqa: E402

LEAST_COVERED = 90.0


def main() -> int:
    """Prints the lines of native/vgpu that are reached, per file; 1 where they are too few."""
    folder = ROOT / "build" / "native-coverage"
    for old in folder.rglob("*.gcda"):
        old.unlink()
    words = ("tests/native", "-m", "not timing", *sys.argv[1:])
    row = parts.run(parts.by_pytest("coverage", *words, ALNAIR_COVERAGE="1"))
    lines: dict[str, dict[int, int]] = {}
    for name, number, count in reached(folder):
        of = lines.setdefault(name, {})
        of[number] = max(of.get(number, 0), count)
    total = hit = 0
    for name, of in sorted(lines.items()):
        covered = sum(count > 0 for count in of.values())
        total, hit = total + len(of), hit + covered
        missing = ranges(sorted(number for number, count in of.items() if not count))
        print(
            f"{name:<36} {covered:>5} of {len(of):>5}  {100 * covered / len(of):5.1f} %  {missing}"
        )
    share = 100 * hit / max(total, 1)
    print(f"{'native/vgpu':<36} {hit:>5} of {total:>5}  {share:5.1f} % of lines")
    if is_low := share < LEAST_COVERED:
        print(f"failed: less than {LEAST_COVERED:g} %")
    return int(is_low or row.counts.failed > 0)


def reached(folder: Path) -> Iterator[tuple[str, int, int]]:
    """(file, line, how often) of the library's sources, from gcov's data."""
    for data in folder.rglob("*.gcda"):
        done = subprocess.run(
            ["gcov", "--json-format", "--stdout", str(data)],
            cwd=data.parent,
            capture_output=True,
            check=True,
        )
        text = done.stdout
        document = json.loads(gzip.decompress(text) if text[:2] == b"\x1f\x8b" else text)
        for file in document["files"]:
            path = Path(document["current_working_directory"], file["file"]).resolve()
            if path.is_relative_to(library := ROOT / "native" / "vgpu"):
                for line in file["lines"]:
                    yield str(path.relative_to(library)), line["line_number"], line["count"]


def ranges(numbers: list[int]) -> str:
    """Line numbers as "3-5 9"."""
    found: list[list[int]] = []
    for number in numbers:
        if found and number <= found[-1][1] + 2:
            found[-1][1] = number
        else:
            found.append([number, number])
    return " ".join(str(a) if a == b else f"{a}-{b}" for a, b in found)


if __name__ == "__main__":
    sys.exit(main())
