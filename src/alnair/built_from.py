"""Which commit this Alnair is made of: told by git in a checkout, by a file in a wheel."""

import subprocess
from pathlib import Path
from typing import Final

PACKAGE: Final = Path(__file__).parent
#: The checkout, if this is one.
ROOT: Final = PACKAGE.parents[1]
#: Written when a wheel is built (deploy/wheel_hook.py).
FILE: Final = "commit.txt"


def commit() -> str:
    """The commit's first 12 digits, with a plus sign if files differ from it; "": unknown."""
    written = PACKAGE / FILE
    if written.is_file():
        return written.read_text().strip()
    return describe(ROOT)


def describe(root: Path) -> str:
    """The same, of a checkout; "" where there is none."""
    # A package folder may lie in somebody else's repository.
    if not (root / ".git").exists():
        return ""
    found = git(root, "rev-parse", "--short=12", "HEAD")
    changed = git(root, "status", "--porcelain", "--untracked-files=no")
    return f"{found}+" if found and changed else found


def git(root: Path, *arguments: str) -> str:
    """What git says; "" where it is missing or refuses."""
    command = ["git", "-C", str(root), *arguments]
    try:
        result = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.SubprocessError):
        return ""
    return result.stdout.strip() if result.returncode == 0 else ""
