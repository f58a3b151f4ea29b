"""AppCode: the functions that an App's program decorated, and how a call of one becomes a job."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, cast

from unstuck.app.draft import Draft
from unstuck.app.engine import Engine
from unstuck.app.job import Job
from unstuck.app.workflow import Calls, Submit, Workflow
from unstuck.chance import SystemChance
from unstuck.intake.arguments import Unresolved
from unstuck.intake.submit import Options, Submitter
from unstuck.model.errors import InvalidInput
from unstuck.model.job import NewJob
from unstuck.model.workflow import UNVERSIONED, Registry
from unstuck.signing import NO_KEYS

if TYPE_CHECKING:
    from unstuck.app.schedules import ScheduleDraft
    from unstuck.store.port import Store

_CHANCE = SystemChance()


class AppCode:
    def __init__(self, engine: Engine, version: str | None, name: str | None = None) -> None:
        self.engine = engine
        engine.required_by_code = self._signed_only
        self.drafts: dict[str, Draft] = {}
        self.schedules: list[ScheduleDraft] = []
        self._declared = 0
        self.decorated = Registry(code_version=version or os.environ.get("UNSTUCK_VERSION") or UNVERSIONED)
        self.decorated.app = name

    def add(self, function: Callable[..., Any], options: Mapping[str, Any], names: Mapping[str, Any]) -> Any:
        """What the decorator does; `names` are those its annotations may use besides the module's."""
        draft = Draft(function, options, names)
        if draft.name in self.drafts:
            raise InvalidInput(f"there are two workflows named {draft.name}; give one of them name=…")
        self.drafts[draft.name] = draft
        self.schedules += draft.schedules
        return Workflow(self, draft.name, function)

    @property
    def registry(self) -> Registry:
        """Everything that was decorated so far, with the settings applied."""
        handlers = self.decorated.handlers
        if len(handlers) < len(self.drafts):
            for name, draft in list(self.drafts.items()):
                if name not in handlers:
                    handlers[name] = draft.handler(self.engine.config)
        if self._declared < len(self.schedules):
            from unstuck.app.schedules import declared

            self.decorated.schedules = declared(self.schedules, self.decorated, self.engine.config.tenant)
            self._declared = len(self.schedules)
        return self.decorated

    def prepared(self, workflow: str, options: Options) -> Submit:
        """What `enqueue` does: check every call, then store them."""
        return self.engine.prepared(self, workflow, options)

    def stored_here(self, workflow: str, options: Options) -> Submit:
        """The same, by our own store. What the calls have in common is looked up and checked here, once."""
        submitter = self._submitter(None)
        pattern = submitter.pattern(self.registry.handler(workflow), options)
        arguments, tenant, engine = self.drafts[workflow].resolved(), pattern.of_all.tenant, self.engine

        def returns(_: str) -> Any:
            return arguments.returns

        def submit(calls: Calls) -> list[Job[Any]]:
            nonlocal submitter
            payloads = [arguments.pack(args, kwargs) for args, kwargs in calls]
            if submitter.store is not (store := engine.store):  # opened since, or another process's
                submitter = self._submitter(store)
            return [
                Job(engine, stored.id, tenant, returns=returns, is_new=stored.created)
                for stored in submitter.submit_calls(pattern, payloads)
            ]

        return submit

    def draft(self, workflow: str, args: Sequence[Any], kwargs: Mapping[str, Any], options: Options) -> NewJob:
        """A checked call that somebody else will store; opens nothing."""
        handler, payload = self.registry.handler(workflow), self.drafts[workflow].resolved().pack(args, kwargs)
        return self._submitter(None).job(handler, payload, options)

    def returns(self, workflow: str) -> Any:
        """The annotated type of its results, as far as this process knows it."""
        try:
            return self.drafts[workflow].resolved().returns
        except (KeyError, Unresolved):
            return inspect.Parameter.empty

    def _signed_only(self) -> list[str]:
        return [name for name, draft in self.drafts.items() if draft.require_signature]

    def _submitter(self, store: Store | None) -> Submitter:
        settings = self.engine.config
        return Submitter(
            cast("Store", store),
            chance=_CHANCE,
            tenant=settings.tenant,
            max_timeout=settings.times.max_timeout,
            signing=self.engine.signing if store is not None else NO_KEYS,
        )
