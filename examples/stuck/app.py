"""The gallery of stuck jobs, as an app of your own would be written: see unstuck.examples.stuck for the culprits.

Run:  unstuck worker app:app
"""

from __future__ import annotations

from unstuck.examples.stuck import app

__all__ = ["app"]
