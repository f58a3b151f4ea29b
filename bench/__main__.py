"""The command line of the bench: `python -m bench [drain|setup|…]`."""

from __future__ import annotations

import argparse
import os
import signal
import sys

from bench import cell, drain, environment, idle, profile
from bench.contender import ENTRIES, load


def main() -> None:
    # As an installed package has it: without its bytecode a worker would compile us anew at every start.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
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
    feeds = commands.add_parser("feed", help="what the feed costs those who submit, claim and settle")
    feeds.add_argument("--rounds", type=int, default=8)
    feeds.add_argument("--jobs", type=int, default=20_000)
    flats = commands.add_parser("flat", help="a single claim beside much that waits, has ended or is shut")
    flats.add_argument("--stores", default="postgres,sqlite")
    flats.add_argument("--only", help="some of the worlds, by name, separated by commas; always beside the empty one")
    flats.add_argument("--repeats", type=int, default=300)
    flats.add_argument("--no-keep", dest="keep", action="store_false", help="do not append to results/flat.jsonl")
    growths = commands.add_parser("growth", help="claim, submit, settle, retention and why beside much of what grows")
    growths.add_argument("--stores", default="postgres,sqlite")
    growths.add_argument("--only", help="some of the things, by name, separated by commas")
    growths.add_argument("--repeats", type=int, default=60)
    growths.add_argument("--quick", action="store_true", help="1 000 and 100 000 of each, instead of up to 1 000 000")
    growths.add_argument("--no-keep", dest="keep", action="store_false", help="do not append to results/growth.jsonl")
    for name, text, jobs in (
        ("targets", "drain with all jobs in 2000 targets beside the same without, on both databases", None),
        ("old-transaction", "drain while somebody holds an old transaction open (PostgreSQL)", 60_000),
        ("waiting", "drain the first of 500 000 jobs beside the first of 20 000 (PostgreSQL)", None),
        ("blocked-keys", "drain 100 keys behind 100 000 older jobs of blocked keys (PostgreSQL)", None),
    ):
        pairs = commands.add_parser(name, help=text)
        pairs.add_argument("--rounds", type=int, default=3)
        pairs.add_argument("--jobs", type=int, default=jobs)
        pairs.add_argument(
            "--no-keep", dest="keep", action="store_false", help="do not append to results/drain.jsonl"
        )
    keyed = commands.add_parser("keys", help="drain over 10 000 limited keys beside the same without limits")
    keyed.add_argument("--stores", default="postgres,sqlite")
    keyed.add_argument("--rounds", type=int, default=3)
    keyed.add_argument("--no-keep", dest="keep", action="store_false", help="do not append to results/drain.jsonl")
    signing = commands.add_parser(
        "signing", help="what verifying costs a job, and drains with and without signatures"
    )
    signing.add_argument("--stores", default="postgres,sqlite")
    signing.add_argument("--rounds", type=int, default=3)
    signing.add_argument("--jobs", type=int)
    signing.add_argument("--no-keep", dest="keep", action="store_false", help="do not append to results/drain.jsonl")
    flows = commands.add_parser("flow", help="a step's round trip beside a bare commit")
    flows.add_argument("--stores", default="postgres,sqlite")
    flows.add_argument("--rounds", type=int, default=7)
    fair = commands.add_parser("fairness", help="a tenant with 10 jobs beside one with 1 000 000")
    fair.add_argument("--stores", default="postgres,sqlite")
    fair.add_argument("--rounds", type=int, default=7)
    forgetting = commands.add_parser("retention", help="how many old jobs go while a worker drains at full speed")
    forgetting.add_argument("--stores", default="postgres,sqlite")
    forgetting.add_argument("--rounds", type=int, default=3)
    forgetting.add_argument("--jobs", type=int, default=600_000, help="so many that ended, and as many that wait")
    ships = commands.add_parser("bulkheads", help="how long others wait while one thing is in trouble")
    ships.add_argument("--stores", default="postgres,sqlite")
    ships.add_argument("--rounds", type=int, default=3)
    news = commands.add_parser("newcomers", help="a job on a new route beside 100 000 routes that nobody serves")
    news.add_argument("--stores", default="postgres,sqlite")
    news.add_argument("--newcomers", type=int, default=20)
    asks = commands.add_parser("enqueue", help="what a submit costs, one by one and in bulk, beside the peers")
    asks.add_argument("--only", help="some of: unstuck-sync,pgqueuer,unstuck-sqlite-sync,huey-sqlite")
    asks.add_argument("--rounds", type=int, default=5)
    asks.add_argument("--singles", type=int, default=500)
    asks.add_argument("--bulk", type=int, default=5000)
    asks.add_argument("--no-keep", dest="keep", action="store_false", help="do not append to results/enqueue.jsonl")
    ask_cells = commands.add_parser("enqueue-cell", help="(by enqueue) one contender, which takes turns")
    ask_cells.add_argument("contender", choices=ENTRIES)
    web = commands.add_parser("http", help="submit, read and list over HTTP beside direct enqueue; idle connections")
    web.add_argument("--stores", default="postgres,sqlite")
    web.add_argument("--rounds", type=int, default=5)
    web.add_argument("--seconds", type=float, default=3.0, help="of each turn")
    web.add_argument("--no-keep", dest="keep", action="store_false", help="do not append to results/http.jsonl")
    web_clients = commands.add_parser("http-clients", help="(by http) clients that ask, in a process of their own")
    web_clients.add_argument("url")
    web_clients.add_argument("what", choices=("submit", "read", "list"))
    web_clients.add_argument("clients", type=int)
    web_clients.add_argument("seconds", type=float)
    web_direct = commands.add_parser("http-direct", help="(by http) one caller of enqueue")
    web_direct.add_argument("database")
    web_direct.add_argument("seconds", type=float)
    seen = commands.add_parser("screens", help="every screen of the dashboard over 100 000 failed jobs, in a browser")
    seen.add_argument("--stores", default="postgres,sqlite")
    seen.add_argument("--jobs", type=int, default=100_000)
    seen.add_argument("--targets", type=int, default=10_000)
    seen.add_argument("--rounds", type=int, default=5)
    stays = commands.add_parser(
        "live", help="1000 long polls and 500 streams on one server; clients that hardly read"
    )
    stays.add_argument("--stores", default="postgres,sqlite")
    stays.add_argument("--rounds", type=int, default=3, help="of submits without and with guests")
    stays.add_argument("--seconds", type=float, default=10.0, help="of each turn")
    stays.add_argument("--slow", type=float, default=300.0, help="seconds with clients that hardly read")
    stays.add_argument("--no-keep", dest="keep", action="store_false", help="do not append to results/live.jsonl")
    commands.add_parser("live-guests", help="(by live) those who stay").add_argument("url")
    too_many = commands.add_parser("live-crowd", help="(by live) far too many streams")
    too_many.add_argument("url")
    too_many.add_argument("key")
    far = commands.add_parser(
        "remote", help="workers at a distance: drain and pick-up beside the same on the database, 1000 idle ones"
    )
    far.add_argument("--stores", default="postgres,sqlite")
    far.add_argument("--rounds", type=int, default=3, help="of drain and pick-up; 0: only the idle ones")
    far.add_argument("--jobs", type=int, help="of a drain")
    far.add_argument("--seconds", type=float, default=30.0, help="with the idle ones")
    far.add_argument("--workers", type=int, default=1000, help="that are idle")
    far.add_argument("--no-keep", dest="keep", action="store_false", help="do not append to results/")
    far_crew = commands.add_parser("remote-crew", help="(by remote) the idle ones")
    far_crew.add_argument("url")
    far_crew.add_argument("database")
    far_crew.add_argument("workers", type=int)
    for name, text in (
        ("idle", "one worker while nothing happens: CPU, statements, memory; and its start to its first job"),
        ("pickup", "single jobs, 50 a second: how soon one is picked up, and the CPU it costs"),
    ):
        lone = commands.add_parser(name, help=text)
        lone.add_argument("--only", default=",".join(idle.NAMES), help=f"some of: {','.join(idle.NAMES)}")
        lone.add_argument("--rounds", type=int, default=3)
        lone.add_argument("--no-keep", dest="keep", action="store_false", help="do not append to results/idle.jsonl")
        commands.add_parser(f"{name}-cell", help=f"(by {name})").add_argument("contender", choices=ENTRIES)
    tables = commands.add_parser(
        "table", help="enqueue, drain, pick-up and idle of everybody, in one interleaved run"
    )
    tables.add_argument("--only", help="some of the contenders, separated by commas")
    tables.add_argument("--rounds", type=int, default=5)
    tables.add_argument("--jobs", type=int, help="of a drain, instead of each contender's own number")
    tables.add_argument("--rich", action="store_true", help="drain a second signature too, where there is one")
    tables.add_argument("--no-keep", dest="keep", action="store_false", help="print only, write no results/table.*")
    commands.add_parser("about", help="(by table)").add_argument("contender", choices=ENTRIES)
    commands.add_parser("lone-cell", help="(by table)").add_argument("contender", choices=ENTRIES)
    works = commands.add_parser("work", help="(by a cell) one worker process of a peer")
    works.add_argument("contender", choices=ENTRIES)
    asked = parser.parse_args()
    # Terminated or not, PostgreSQL, workers and temporary directories go: SystemExit unwinds everything.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    match asked.command or "drain":
        case "setup":
            environment.setup()
        case "drain":
            names = asked.only.split(",") if asked.only else drain.PEERS
            drain.run(names, asked.rounds, asked.jobs, asked.keep)
        case "targets":
            beside = {"2000-targets": "no-targets", "sqlite-2000-targets": "sqlite-no-targets"}
            sys.exit(not drain.compare(beside, 0.7, asked.rounds, asked.jobs, asked.keep))
        case "old-transaction":
            beside = {"old-transaction": "unstuck-sync"}
            sys.exit(not drain.compare(beside, 0.5, asked.rounds, asked.jobs, asked.keep))
        case "waiting":
            beside = {"500000-waiting": "few-waiting"}
            sys.exit(not drain.compare(beside, 0.9, asked.rounds, asked.jobs, asked.keep))
        case "blocked-keys":
            beside = {"behind-blocked-keys": "100-keys"}
            sys.exit(not drain.compare(beside, 0.9, asked.rounds, asked.jobs, asked.keep))
        case "keys":
            from bench import keys

            sys.exit(not keys.run(asked.stores.split(","), asked.rounds, asked.keep))
        case "signing":
            from bench import signing as signed_jobs

            kept = signed_jobs.run(asked.stores.split(","), asked.rounds, asked.jobs, asked.keep)
            sys.exit(not kept)
        case "fairness":
            from bench import fairness

            sys.exit(not fairness.run(asked.stores.split(","), asked.rounds))
        case "bulkheads":
            from bench import bulkheads

            sys.exit(not bulkheads.run(asked.stores.split(","), asked.rounds))
        case "retention":
            from bench import retention

            sys.exit(not retention.run(asked.stores.split(","), asked.rounds, asked.jobs))
        case "newcomers":
            from bench import newcomers

            sys.exit(not newcomers.run(asked.stores.split(","), asked.newcomers))
        case "flow":
            from bench import flow

            flow.run(asked.stores.split(","), asked.rounds)
        case "feed":
            from bench import feed

            feed.run(asked.rounds, asked.jobs)
        case "flat":
            from bench import flat

            only = asked.only.split(",") if asked.only else []
            sys.exit(not flat.run(asked.stores.split(","), only, asked.repeats, asked.keep))
        case "growth":
            from bench import growth

            only = asked.only.split(",") if asked.only else []
            kept = growth.run(asked.stores.split(","), only, asked.repeats, asked.keep, quick=asked.quick)
            sys.exit(not kept)
        case "enqueue":
            from bench import enqueue

            names = asked.only.split(",") if asked.only else list(enqueue.ASKERS)
            enqueue.run(names, asked.rounds, asked.singles, asked.bulk, asked.keep)
        case "http":
            from bench import http

            sys.exit(not http.run(asked.stores.split(","), asked.rounds, asked.seconds, asked.keep))
        case "http-clients":
            from bench import http

            http.clients(asked.url, asked.what, asked.clients, asked.seconds)
        case "http-direct":
            from bench import http

            http.direct(asked.database, asked.seconds)
        case "screens":
            from bench import screens

            sys.exit(not screens.run(asked.stores.split(","), asked.jobs, asked.targets, asked.rounds))
        case "live":
            from bench import live

            sys.exit(not live.run(asked.stores.split(","), asked.rounds, asked.seconds, asked.slow, asked.keep))
        case "live-guests":
            from bench import live

            live.guests(asked.url)
        case "live-crowd":
            from bench import live

            live.crowd(asked.url, asked.key)
        case "remote":
            from bench import remote

            stores = asked.stores.split(",")
            sys.exit(not remote.run(stores, asked.rounds, asked.jobs, asked.seconds, asked.workers, asked.keep))
        case "remote-crew":
            from bench import remote

            remote.crew(asked.url, asked.database, asked.workers)
        case "enqueue-cell":
            from bench import enqueue

            enqueue.serve(asked.contender)
        case "profile":
            profile.run(asked.contender, asked.jobs)
        case "profile-cell":
            profile.run_cell(asked.contender, asked.jobs)
        case "cell":
            cell.main(asked.contender, asked.jobs)
        case "idle" | "pickup":
            idle.run(asked.command, asked.only.split(","), asked.rounds, asked.keep)
        case "idle-cell":
            idle.idle_cell(asked.contender)
        case "pickup-cell":
            idle.pickup_cell(asked.contender)
        case "table":
            from bench import table

            names = asked.only.split(",") if asked.only else table.NAMES
            table.run(names, asked.rounds, asked.jobs, asked.rich, asked.keep)
        case "about":
            from bench import table

            table.about_cell(asked.contender)
        case "lone-cell":
            idle.lone_cell(asked.contender)
        case "work":
            load(asked.contender).work()


if __name__ == "__main__":
    main()
