"""A gallery of everything that gets a worker stuck elsewhere: one small workflow per culprit, and two innocents.

Run it yourself:  unstuck worker unstuck.examples.stuck:app
hang a job up:    unstuck enqueue stuck.regex_in_thread --app unstuck.examples.stuck:app
and look:         unstuck workers; unstuck stack JOB

Every culprit ends by itself within two minutes, whatever becomes of its worker.
"""

from __future__ import annotations

from unstuck.examples.stuck import coroutines, deaths, innocents, interpreter, leftovers, manners, solitude, threads
from unstuck.examples.stuck.shelf import app

__all__ = ["app", "coroutines", "deaths", "innocents", "interpreter", "leftovers", "manners", "solitude", "threads"]
