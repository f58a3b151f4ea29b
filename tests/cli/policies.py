"""An app whose jobs leave open what their policy is, or say a part of it."""

from __future__ import annotations

import unstuck


def declare(app: unstuck.App) -> unstuck.App:
    @app.workflow
    def plain() -> str:
        return "done"

    @app.workflow(grace=2, retries=1)
    def own() -> str:
        return "done"

    @app.workflow
    def parent(ctx: unstuck.Context) -> str:
        child: str = ctx.spawn(plain).id
        return child

    return app


app = declare(unstuck.App())
