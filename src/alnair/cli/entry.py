"""Where the command begins: it imports nothing slow, so that an interrupt finds it ready."""

import sys


def main() -> None:
    """Runs the command; an interrupt ends it with a sentence, also while it is being loaded."""
    try:
        from alnair.cli.main import main as run

        run()
    except KeyboardInterrupt:
        print("alnair: interrupted", file=sys.stderr)
        sys.exit(130)
