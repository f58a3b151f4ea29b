"""The command line of the bench: `python -m bench [drain|setup|…]`."""

from __future__ import annotations

import argparse
import signal
import sys

from bench import cell, drain, environment, profile
from bench.contender import ENTRIES, load


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench", description="Figures beside peers, for ratios only.")
    parser.set_defaults(command="drain", only=None, rounds=3, jobs=None, keep=True)
    commands = parser.add_subparsers(dest="command")
    commands.add_parser("setup", help="install the peers into a virtualenv of their own")
    drains = commands.add_parser("drain", help="drain no-op jobs, every contender once per round (the default)")
    drains.add_argument("--only", help=f"some of: {','.join(ENTRIES)}")
    drains.add_argument("--rounds", type=int, default=3)
    drains.add_argument("--jobs", type=int, help="instead of each contender's own number")
    drains.add_argument("--no-keep", dest="keep", action="store_false", help="do not append to results/drain.jsonl")
    profiles = commands.add_parser("profile", help="where the microseconds of one contender's drain go")
    profiles.add_argument("contender", choices=ENTRIES)
    profiles.add_argument("--jobs", type=int)
    cells = commands.add_parser("cell", help="(by drain) one measurement of one contender")
    cells.add_argument("contender", choices=ENTRIES)
    cells.add_argument("--jobs", type=int)
    profile_cells = commands.add_parser("profile-cell", help="(by profile) the same, in the contender's interpreter")
    profile_cells.add_argument("contender", choices=ENTRIES)
    profile_cells.add_argument("--jobs", type=int)
    works = commands.add_parser("work", help="(by a cell) one worker process of a peer")
    works.add_argument("contender", choices=ENTRIES)
    asked = parser.parse_args()
    # Terminated or not, PostgreSQL, workers and temporary directories go: SystemExit unwinds everything.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    match asked.command or "drain":
        case "setup":
            environment.setup()
        case "drain":
            names = asked.only.split(",") if asked.only else list(ENTRIES)
            drain.run(names, asked.rounds, asked.jobs, asked.keep)
        case "profile":
            profile.run(asked.contender, asked.jobs)
        case "profile-cell":
            profile.run_cell(asked.contender, asked.jobs)
        case "cell":
            cell.main(asked.contender, asked.jobs)
        case "work":
            load(asked.contender).work()


if __name__ == "__main__":
    main()
