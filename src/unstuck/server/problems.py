"""Problems: what HTTP answers when something is refused or fails, as RFC 9457 writes it.

One table says the status of every error of ours; the errors of HTTP itself are `HttpProblem`s. `code` is the name of
the exception that Python callers get, so that a Client raises the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import Enum
from typing import Any, NamedTuple

from unstuck.model import errors
from unstuck.model.payload import is_plain

MEDIA_TYPE = "application/problem+json"


class Told(NamedTuple):
    """How an error is told: its status, what it is in general, and what to do about it."""

    status: int
    title: str
    remedy: str


_FIX = "change the request as the detail says; it was not carried out"
_LOOK = "check the name or id; a list shows those that you may see"
_STATE = "look at the present state, and decide again"
_LATER = "send the same request again after the time that Retry-After names"
_NEVER = "this is an error of a handler, and of no request"

ERRORS: dict[type[errors.UnstuckError], Told] = {
    errors.UnstuckError: Told(400, "It was refused", _FIX),
    errors.InvalidInput: Told(422, "What was asked cannot be accepted", _FIX),
    errors.NotAnApp: Told(422, "That is not an App", _FIX),
    errors.InvalidArguments: Told(422, "The arguments do not fit the workflow", _FIX),
    errors.WrongArguments: Told(422, "The arguments do not fit the request", _FIX),
    errors.NotStorable: Told(422, "A value that no database could give back unchanged", _FIX),
    errors.SignatureRefused: Told(
        422, "The signature does not hold", "sign what `about.checked` says, or look for who sent it"
    ),
    errors.AddressRefused: Told(
        422, "The host may not be asked", "give a public https URL, or ask a platform's admin to allow it"
    ),
    errors.InvalidPolicy: Told(422, "An option that cannot hold", _FIX),
    errors.InvalidSettings: Told(422, "Settings that cannot hold", _FIX),
    errors.AmbiguousWorker: Told(409, "Several workers are meant", "name one of them as the detail says"),
    errors.AmbiguousJob: Told(409, "Several jobs are meant", "give more of the id"),
    errors.UnknownJob: Told(404, "There is no such job", _LOOK),
    errors.UnknownWorkflowName: Told(404, "There is no such workflow", _LOOK),
    errors.UnknownWorker: Told(404, "There is no such worker", _LOOK),
    errors.UnknownProcess: Told(404, "There is no such process", _LOOK),
    errors.UnknownTarget: Told(404, "There is no such target", _LOOK),
    errors.UnknownTenant: Told(404, "There is no such tenant", _LOOK),
    errors.UnknownSetting: Told(404, "There is no such setting", _LOOK),
    errors.UnknownAlert: Told(404, "There is no such alert", _LOOK),
    errors.UnknownNotification: Told(404, "There is no such notification", _LOOK),
    errors.UnknownBulk: Told(404, "There is no such bulk", _LOOK),
    errors.UnknownSchedule: Told(404, "There is no such schedule", _LOOK),
    errors.UnknownWebhook: Told(404, "There is no such webhook", _LOOK),
    errors.UnknownDelivery: Told(404, "There is no such delivery", _LOOK),
    errors.UnknownHook: Told(404, "There is no such hook", _LOOK),
    errors.UnknownOrder: Told(404, "There is no such order", _LOOK),
    errors.NotBlacklisted: Told(404, "The workflow is not on the blacklist", _LOOK),
    errors.NotQuarantined: Told(404, "Nothing of the job is set aside", _LOOK),
    errors.NoDeadLetter: Told(404, "The job has no dead letter", _LOOK),
    errors.UnknownKey: Told(404, "There is no such API key", _LOOK),
    errors.UnknownSession: Told(404, "There is no such browser session", _LOOK),
    errors.Unauthenticated: Told(401, "It is not known who asks", "show an API key that works"),
    errors.TooManyAttempts: Told(429, "Too many keys that do not work", _LATER),
    errors.KeyEnded: Told(409, "The API key has ended", _STATE),
    errors.NotPermitted: Told(403, "That is not permitted", "ask with a key whose role and tenant allow it"),
    errors.TooManyQueued: Told(429, "Too many jobs wait", _LATER),
    errors.Conflict: Told(409, "The present state does not allow it", _STATE),
    errors.IllegalMove: Told(409, "The job's state does not allow it", _STATE),
    errors.NotBlocking: Told(409, "The job blocks no target", _STATE),
    errors.NeedsSignature: Told(409, "It would be a dead letter again", "sign it anew"),
    errors.SecretNotOpened: Told(
        409, "A stored secret cannot be opened", "give the server its sealing_keys, or rotate the secret"
    ),
    errors.NoSigningKey: Told(409, "There is no key to sign it with", "give a signature that was made elsewhere"),
    errors.CanaryNotCompleted: Told(409, "The canary has not completed", _STATE),
    errors.BulkEnded: Told(409, "The bulk has ended", _STATE),
    errors.OtherCount: Told(409, "Other jobs match than were expected", "count again, then decide"),
    errors.ScheduleExists: Told(409, "There is such a schedule already", "change that one, or choose another name"),
    errors.DeclaredByCode: Told(409, "The schedule is declared by code", "change the code, or pause the schedule"),
    errors.TooManySchedules: Told(409, "The tenant has too many schedules", "delete one, or raise the setting"),
    errors.WebhookExists: Told(409, "There is such a webhook already", "change that one, or choose another name"),
    errors.TooManyWebhooks: Told(409, "The tenant has too many webhooks", "delete one, or raise the setting"),
    errors.NotActive: Told(409, "The webhook is paused or disabled", "enable it"),
    errors.HookExists: Told(409, "There is such a hook already", "change that one, or choose another name"),
    errors.TooManyHooks: Told(409, "The tenant has too many hooks", "delete one, or raise the setting"),
    errors.WorkflowBlacklisted: Told(409, "The workflow is on the blacklist", "ask an operator to lift its entry"),
    errors.NoStack: Told(409, "There is no stack to show", _STATE),
    errors.StaleCursor: Told(410, "The cursor is no longer kept", "go on from `about.go_on`"),
    errors.KeyConflict: Told(422, "The key belongs to another job", "use another key for another job"),
    errors.IdConflict: Told(409, "The id belongs to another job", "use another id for another job"),
    errors.EventConflict: Told(409, "The id belongs to another event", "use another id for another event"),
    errors.NotAsked: Told(403, "The question is for others", "let one of those decide that the detail names"),
    errors.NotWaiting: Told(409, "Nobody waits for that", _STATE),
    errors.StoreError: Told(503, "The database did not do what was asked", _LATER),
    errors.StoreUnavailable: Told(503, "The database cannot be reached", _LATER),
    errors.StoreBusy: Told(503, "The database is busy", _LATER),
    errors.StoreLocked: Told(503, "The database is locked", _LATER),
    errors.OutcomeUnknown: Told(503, "It may have been done", "repeat it with the same key, or look first"),
    errors.SchemaMismatch: Told(503, "The database's schema is of another version", "run: unstuck db migrate"),
    errors.NoAnswer: Told(504, "The worker did not answer in time", "the order stands; look again later"),
    errors.StillRunning: Told(504, "The job still runs", "wait for it again"),
    errors.JobFailed: Told(409, "The job did not complete", _STATE),
    errors.InvalidResult: Told(500, "A result that is not what was declared", _NEVER),
    errors.TargetDeadlock: Told(409, "A child on a target that its parent keeps", _NEVER),
    errors.BudgetExceeded: Told(409, "More was spent than the job may use", _NEVER),
    errors.ApprovalRejected: Told(409, "The answer was no", _NEVER),
    errors.ChildrenFailed: Told(409, "Not all children completed", _NEVER),
    errors.StepTimeout: Told(504, "A step took too long", _NEVER),
}

#: What HTTP itself refuses.
REFUSALS: dict[str, Told] = {
    "BadRequest": Told(400, "The request is not one that can be read", _FIX),
    "NotJson": Told(400, "The body is not JSON that can be accepted", _FIX),
    "NotSigned": Told(401, "The delivery is not accepted", "sign it with the secret of this hook, and now"),
    "Forbidden": Told(403, "It comes from somewhere that may not ask", "ask from this machine itself, or with a key"),
    "CrossSite": Told(
        403, "It does not come from the page that logged in", "ask from our own page, with its token in X-CSRF-Token"
    ),
    "NotSecure": Told(
        403, "Nobody logs in here over http", "use https; behind a proxy that ends TLS: unstuck server --public-url https://…"
    ),
    "NotFound": Told(404, "There is nothing at this path", "see /openapi.json for the paths"),
    "MethodNotAllowed": Told(405, "Not by this method", "use a method that Allow names"),
    "TooSlow": Told(408, "The request came too slowly", "send it whole, without pauses"),
    "TooLarge": Told(413, "The body is too large", "send less at once"),
    "NotAsJson": Told(415, "The body is not declared as JSON", "send it with Content-Type: application/json"),
    "TooManyHeaders": Told(431, "Too many headers, or too large ones", "send fewer"),
    "TooManyRequests": Told(429, "Too many requests with this key", _LATER),
    "Refused": Told(422, "No job is made of the delivery", "look at the deliveries of the hook"),
    "ServerError": Told(500, "Something failed in the server", "tell who runs it the request_id; its log says more"),
    "NotInstalled": Told(501, "The server lacks a library", "who runs it installs what the detail names"),
    "Overloaded": Told(503, "The server has no hands free", _LATER),
    "Paused": Told(503, "The hook is paused", _LATER),
    "NotReady": Told(503, "The server is not ready", _LATER),
}  # fmt: skip

#: Seconds after which it is worth another try, where nothing better is known.
_SOON = 1


class HttpProblem(Exception):
    """A refusal of HTTP itself; `code` is one of REFUSALS."""

    def __init__(self, code: str, detail: str, **headers: str) -> None:
        super().__init__(detail)
        self.code = code
        self.headers = {name.replace("_", "-"): value for name, value in headers.items()}


class Problem(NamedTuple):
    status: int
    headers: Mapping[str, str]
    body: dict[str, Any]

    def encoded(self) -> bytes:
        return json.dumps(self.body).encode()


def problem_of(error: Exception, request_id: str, root: str = "") -> Problem:
    """What is answered; of an error that nobody foresaw nothing is told."""
    headers: dict[str, str] = {}
    more: dict[str, Any] = {}
    if isinstance(error, errors.UnstuckError):
        kind = next(kind for kind in type(error).__mro__ if kind in ERRORS)
        told, code, detail = ERRORS[kind], type(error).__name__, str(error)
        more = _more(error)
        if (after := getattr(error, "retry_after", None)) is not None:
            headers["Retry-After"] = str(max(1, round(after)))
    elif isinstance(error, HttpProblem):
        told, code, detail = REFUSALS[error.code], error.code, str(error)
        headers |= error.headers
    else:
        told, code, detail = REFUSALS["ServerError"], "ServerError", "an error that was not foreseen"
    if told.status in (429, 503):
        headers.setdefault("Retry-After", str(_SOON))
    if told.status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="unstuck"'
    body = {
        "type": f"{root}/problems/{code}",
        "title": told.title,
        "status": told.status,
        "detail": detail,
        "code": code,
        "remedy": told.remedy,
        "request_id": request_id,
    }
    return Problem(told.status, headers, body | more)


def _more(error: errors.UnstuckError) -> dict[str, Any]:
    """What the exception carries besides its message: a Client gives it the same."""
    if isinstance(error, errors.WrongArguments):
        said = [{"in": place, "pointer": pointer, "detail": detail} for place, pointer, detail in error.problems]
        return {"errors": said}
    carried = {name: value.value if isinstance(value, Enum) else value for name, value in vars(error).items()}
    about = {name: value for name, value in carried.items() if not name.startswith("_") and is_plain(value)}
    return {"about": about} if about else {}


def page_of(code: str) -> str | None:
    """What the type of a problem leads to."""
    told = REFUSALS.get(code) or next((each for kind, each in ERRORS.items() if kind.__name__ == code), None)
    return told and f"{code} ({told.status}): {told.title}.\n\nWhat to do: {told.remedy}.\n"
