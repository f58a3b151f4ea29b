"""Why, as applications ask it: by handle, by id, by the beginning of an id, from coroutines too."""

from __future__ import annotations

import asyncio

import pytest

import unstuck
from tests.app.hand import Hand
from unstuck.model.errors import UnknownJob
from unstuck.model.why.codes import Code
from unstuck.store.sql_store import SqlStore

HELD = "not runnable: it is held until somebody releases it"


@pytest.fixture
def app(store_url: str) -> unstuck.App:
    return unstuck.App(store_url, name="shop")


def test_a_handle_and_the_app_give_the_same_answer_a57(app: unstuck.App) -> None:
    @app.workflow
    def greet() -> None: ...

    with app:
        job = greet.using(hold=True).enqueue()
        found = job.why()
        assert (found.job, found.is_runnable, found.verdict) == (job.id, False, HELD)
        assert str(found) == HELD
        assert [reason.remedy for reason in found.reasons] == [f"unstuck jobs release {job.id}"]
        assert job.why().verdict == app.jobs.why(job.id).verdict == app.jobs.why(job.id[:30]).verdict == HELD
        assert asyncio.run(job.awhy()).codes == (Code.HELD,)


def test_a_job_is_explained_to_its_own_tenant_only(app: unstuck.App, store: SqlStore) -> None:
    @app.workflow
    def greet() -> None: ...

    with app:
        job = greet.using(tenant="acme").enqueue()
        assert job.why().codes == (Code.NO_WORKER,)
        assert app.jobs.why(job.id, tenant="acme").codes == (Code.NO_WORKER,)
        with pytest.raises(UnknownJob, match=job.id):
            app.jobs.why(job.id)
        with pytest.raises(UnknownJob):
            app.jobs.why("ffff")
        Hand(store)
        assert job.why().codes == (Code.APP_NOT_LOADED,)
