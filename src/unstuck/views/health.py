"""Whether everything is as it should be."""

from __future__ import annotations

from unstuck.views import View


class CheckView(View, frozen=True, kw_only=True):
    """One question and its answer; only `fatal` ones decide whether all is well. `remedy`: what to type, or to do,
    which `detail` says too."""

    name: str
    ok: bool
    detail: str
    fatal: bool
    remedy: str | None


class HealthView(View, frozen=True, kw_only=True):
    """The answers in the order they were asked, the database first: what cannot be asked without it follows only if
    it answered. `bounds`: how long things can take at most, in seconds, while the database can be written."""

    healthy: bool
    checks: tuple[CheckView, ...]
    bounds: dict[str, float]
