"""Errors of handlers in Sentry, with the job as tags. Needs `pip install sentry-sdk`, and SENTRY_DSN in the worker's
environment; docs/tracing.md explains it line by line."""

from __future__ import annotations

from collections.abc import Iterator

import sentry_sdk
from sentry_sdk.envelope import Envelope

import unstuck

app = unstuck.App()


@app.on_executor_start
def start_sentry() -> None:
    sentry_sdk.init(max_breadcrumbs=20)  # the DSN comes from SENTRY_DSN
    # Starts its thread here: started by the first job that fails, it would be taken for something that the job left.
    if (transport := sentry_sdk.get_client().transport) is not None:
        transport.capture_envelope(Envelope())


@app.middleware
def report_errors(ctx: unstuck.Context) -> Iterator[None]:
    with sentry_sdk.isolation_scope() as scope:
        scope.set_transaction_name(ctx.workflow)
        scope.set_tags({"job": ctx.job, "workflow": ctx.workflow, "tenant": ctx.tenant, "attempt": ctx.attempt})
        try:
            yield
        except unstuck.Retry:
            raise
        except Exception as error:
            sentry_sdk.capture_exception(error)
            raise


@app.on_executor_stop
def stop_sentry() -> None:
    sentry_sdk.flush(timeout=2.0)


@app.workflow(retries=0)
def charge(order: int) -> None:
    raise ValueError(f"order {order} has no card")


@app.workflow(retries=0)
async def charge_later(order: int) -> None:
    raise ValueError(f"order {order} has no card either")
