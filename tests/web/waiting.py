"""An app with a job that waits for an event."""

from __future__ import annotations

import unstuck

app = unstuck.App()


@app.workflow
def waits_for_word(ctx: unstuck.Context) -> object:
    return ctx.wait_for("word", timeout=600)
