"""`python -m dragoman_gateway`: the command `dragoman serve` without `dragoman`."""

import sys

from dragoman_gateway.cli import main

if __name__ == "__main__":
    sys.exit(main())
