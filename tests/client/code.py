"""The code of an app, for the worker's side and for the side that has no database alike."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import unstuck


def with_code(app: unstuck.App) -> unstuck.Workflow[[int, datetime], dict[str, datetime]]:
    @app.workflow(name="bill", queue="money", retries=0)
    def bill(amount: int, due: datetime) -> dict[str, datetime]:
        return {"due": due}

    @app.workflow(name="note")
    def note(text: str, **more: Any) -> str:
        return text

    return bill


def deploy(app: unstuck.App) -> None:
    """As a worker does when it starts."""
    app._engine.store.register_workflows(app._registry.records())
