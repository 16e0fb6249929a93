"""`python -m alnair` is `alnair`."""

from alnair.cli.entry import main

if __name__ == "__main__":
    main()
