"""`python -m alnair` is `alnair`."""

from alnair.apps.cli import main

if __name__ == "__main__":
    main()
