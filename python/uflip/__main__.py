"""`python -m uflip` is the command `uflip`."""

from uflip.cli.main import main

if __name__ == "__main__":
    main()
