"""`python -m alnair` is `alnair`."""

from alnair.cli.main import main

if __name__ == "__main__":
    main()
