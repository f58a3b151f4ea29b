"""An app with targets, limits and keys, for tests of the command line."""

from __future__ import annotations

import unstuck

app = unstuck.App()


@app.workflow(target="{customer}", retries=0)
def deliver(customer: str, item: str = "lamp", at_home: bool = True) -> str:
    """Brings things to a customer, one at a time."""
    if not at_home:
        raise ValueError(f"{customer} is not at home")
    return f"{customer} has the {item}"


@app.workflow(queue="io", concurrency=2, limit_key="host:{host}")
def fetch(host: str) -> str:
    return host
