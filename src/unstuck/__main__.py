"""`python -m unstuck …` is `unstuck …`."""

import sys

from unstuck.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
