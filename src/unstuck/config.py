"""Settings: defaults < preset < file < environment < flags, merged, then checked once; all problems at once.

One flat list of names, the same in `unstuck.toml`, as `UNSTUCK_NAME` and as a flag. Durations are seconds or texts
like "90s", "5m", "2h". Every value remembers where it came from.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import field, fields, replace
from pathlib import Path
from typing import Any, Protocol

from unstuck.model.address import masked as masked
from unstuck.model.errors import InvalidInput, InvalidPolicy, InvalidSettings
from unstuck.model.job import DEFAULT_TENANT
from unstuck.model.payload import check_name
from unstuck.model.policy import Policy, reruns
from unstuck.model.times import Times, plain_float
from unstuck.model.times import seconds as seconds
from unstuck.records import dataclass

DEFAULT_DATABASE = "sqlite:///unstuck.db"
FILE = "unstuck.toml"

#: Each carries the numbers of the document it is named after; what that one left open is chosen so that it holds.
PRESETS: dict[str, dict[str, Any]] = {
    "retry_first": {
        "lease": 300.0,
        "beat": 30.0,
        "lost_grace": 60.0,
        "drain": 30.0,
        "on_drain_timeout": "expire",
    },
    "development": {"lease": 60.0, "beat": 10.0},
    "high_reliability": {"lease": 180.0, "beat": 15.0},
    "signed_remote": {"lease": 60.0, "beat": 15.0},
    "human_gate": {"beat": 2.0, "store_call": 1.0, "retries": 0, "on_lost": "fail", "on_drain_timeout": "pause"},
    "stuck_guard": {"grace": 10.0},
}
PRESETS["production"] = PRESETS["retry_first"]

#: Names under which other documents and systems know a setting.
ALIASES = {
    "heartbeat_interval": "beat",
    "lease_duration": "lease",
    "database_url": "database",
    "timeout_seconds": "timeout",
    "cancel_grace_seconds": "grace",
    "shutdown_grace_period_seconds": "drain",
}
#: Environment names without our prefix that are read too.
_FOREIGN_ENVIRONMENT = ("CANCEL_GRACE_SECONDS", "SHUTDOWN_GRACE_PERIOD_SECONDS", "TOKEN_LIMIT")
_PREFIX = "UNSTUCK_"
#: Ours, but not settings: read where they are needed.
_OTHER_ENVIRONMENT = frozenset(
    {"fork", "version", "incarnation", "executor", "url", "key", "key_file", "test_postgres"}
)


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that can be set, checked. `policy` is what workflows start from, `times` what the engine keeps."""

    database: str = DEFAULT_DATABASE
    app: str | None = None
    tenant: str = DEFAULT_TENANT
    queues: tuple[str, ...] = ()
    concurrency: int = 10
    processes: int = field(default_factory=lambda: os.cpu_count() or 1)
    max_jobs_per_process: int | None = None
    max_memory: int | None = None
    memory_limit: int | None = None
    ready_file: str | None = None
    health_port: int | None = None
    health_host: str = "127.0.0.1"
    log_format: str = "auto"
    preset: str | None = None
    token_limit: int | None = None
    stop_time: float | None = None
    signing_keys: str | None = field(default=None, repr=False)
    require_signature: tuple[str, ...] = ()
    sealing_keys: str | None = field(default=None, repr=False)
    times: Times = field(default_factory=Times)
    policy: Policy = field(default_factory=Policy)
    origins: Mapping[str, str] = field(default_factory=dict)

    def sources(self) -> dict[str, tuple[Any, str]]:
        """Every setting by name: its value, with secrets masked, and where it came from."""
        return {name: (_shown(name, self.value(name)), self.origins.get(name, "default")) for name in sorted(NAMES)}

    def value(self, name: str) -> Any:
        if name in _TIMES:
            return getattr(self.times, name)
        return getattr(self.policy if name in _POLICY else self, name)

    def bounds(self) -> dict[str, float]:
        return self.times.bounds()

    def warnings(self) -> list[str]:
        """What is worth saying at start and yet not refused."""
        found = self.times.warnings()
        if self.stop_time is None and self.times.drain > 90:
            found.append(
                f"drain={self.times.drain:g}: the service manager's stop time is not known (UNSTUCK_STOP_TIME); "
                f"allow at least {self.times.drain + self.times.kill_grace:g} seconds there"
            )
        if self.preset == "signed_remote" and not self.require_signature:
            found.append(
                "preset signed_remote sets lease and beat alone: jobs are not signed unless require_signature asks"
            )
        return found


def load(
    flags: Mapping[str, Any] | None = None,
    *,
    app: Mapping[str, Any] | None = None,
    environ: Mapping[str, str] | None = None,
    directory: Path | str | None = None,
) -> Settings:
    """Merge all sources and check the whole; flags that are None were not given. InvalidSettings names everything.

    `app` is what the code says in `App(…)`: it knows its database better than the environment does.
    """
    merge = _Merge()
    given = {name: value for name, value in (flags or {}).items() if value is not None}
    layers = [
        *_file_layer(Path(directory or "."), merge.problems),
        *_environment_layers(os.environ if environ is None else environ, merge.problems),
        ("app", app or {}),
        ("flags", given),
    ]
    parsed = [(source, _parsed(values, source, merge.problems)) for source, values in layers]
    merge.add_preset(parsed)
    for source, values in parsed:
        merge.add(source, values)
    return merge.settings()


def check(flags: Mapping[str, Any]) -> None:
    """Refuse names and values that no other source could mend; reads nothing."""
    problems: list[str] = []
    _parsed(flags, "settings", problems)
    if problems:
        raise InvalidSettings(problems)


class _Merge:
    """Later layers win; every name remembers its last writer."""

    def __init__(self) -> None:
        self.problems: list[str] = []
        self._values: dict[str, Any] = {}
        self._origins: dict[str, str] = {}

    def add(self, source: str, values: Mapping[str, Any]) -> None:
        values = reruns(dict(values))
        self._values.update(values)
        self._origins.update(dict.fromkeys(values, source))

    def add_preset(self, layers: list[tuple[str, dict[str, Any]]]) -> None:
        chosen = next((values["preset"] for _, values in reversed(layers) if values.get("preset")), None)
        if chosen is not None:
            self.add(f"preset {chosen}", PRESETS[chosen])

    def settings(self) -> Settings:
        own = {name: value for name, value in self._values.items() if name in _OWN}
        times = replace(Times(), **{n: v for n, v in self._values.items() if n in _TIMES})
        policy = _limited(replace(Policy(), **{n: v for n, v in self._values.items() if n in _POLICY}), own)
        settings = Settings(**own, times=times, policy=policy, origins=dict(self._origins))
        # Inequalities between values that could not be read would only confuse.
        problems = self.problems or _problems(settings)
        if problems:
            raise InvalidSettings(problems)
        return settings


def _limited(policy: Policy, own: Mapping[str, Any]) -> Policy:
    """`token_limit` is a budget by another name; one that speaks of tokens itself is more exact."""
    limit = own.get("token_limit")
    if limit is None or limit < 1 or "tokens" in dict(policy.budget):
        return policy
    return replace(policy, budget=tuple(sorted((*policy.budget, ("tokens", float(limit))))))


def _problems(settings: Settings) -> list[str]:
    timeout = settings.policy.timeout
    limit = None if timeout == "unlimited" else float(timeout)
    found = settings.times.problems(timeout=limit, stop_time=settings.stop_time)
    found += settings.policy.problems()
    found += process_problems(settings)
    if settings.token_limit is not None and settings.token_limit < 1:
        found.append(f"token_limit={settings.token_limit} is below 1")
    for kind, names in (("tenant", (settings.tenant,)), ("queue", settings.queues)):
        for name in names:
            try:
                check_name(name, kind)
            except InvalidInput as error:
                found.append(str(error))
    return found


class Sizes(Protocol):
    """How many processes there are and when one is worn out: settings, or what a worker is started with."""

    @property
    def concurrency(self) -> int: ...
    @property
    def processes(self) -> int: ...
    @property
    def max_jobs_per_process(self) -> int | None: ...
    @property
    def max_memory(self) -> int | None: ...
    @property
    def memory_limit(self) -> int | None: ...


def process_problems(sizes: Sizes) -> list[str]:
    names = ("concurrency", "processes", "max_jobs_per_process", "max_memory", "memory_limit")
    given = {name: value for name in names if (value := getattr(sizes, name)) is not None}
    found = [f"{name}={value} is below 1" for name, value in given.items() if value < 1]
    if sizes.max_memory is not None and sizes.memory_limit is not None and sizes.memory_limit < sizes.max_memory:
        found.append(
            f"memory_limit={sizes.memory_limit} is below max_memory={sizes.max_memory}: processes would be killed "
            "before they are replaced"
        )
    return found


# --- where values come from -----------------------------------------------------------------------------------


def _file_layer(directory: Path, problems: list[str]) -> list[tuple[str, dict[str, Any]]]:
    """`unstuck.toml`, or else the [tool.unstuck] table of a pyproject.toml; never both."""
    for name, table in ((FILE, ()), ("pyproject.toml", ("tool", "unstuck"))):
        try:
            with (directory / name).open("rb") as file:
                import tomllib  # where there is no file, nobody pays for it

                values: Any = tomllib.load(file)
        except FileNotFoundError:
            continue
        except (OSError, ValueError, RecursionError) as error:  # not TOML, not UTF-8, brackets without end
            if not table:
                problems.append(f"{name} cannot be read: {error}")
                return []
            continue  # another tool's pyproject.toml that is broken is not ours to refuse
        for key in table:
            values = values.get(key, {}) if isinstance(values, dict) else {}
        if values or not table:
            return [(name, values)]
    return []


def _environment_layers(environ: Mapping[str, str], problems: list[str]) -> list[tuple[str, dict[str, Any]]]:
    foreign = {name: environ[name] for name in _FOREIGN_ENVIRONMENT if environ.get(name)}
    ours = {name: value for name, value in environ.items() if name.startswith(_PREFIX) and value}
    layers = [(name, {name.lower(): value}) for name, value in foreign.items()]
    for variable, value in sorted(ours.items()):
        name = variable.removeprefix(_PREFIX).lower()
        if _our_name(name) in NAMES:
            layers.append((variable, {name: value}))
        elif name not in _OTHER_ENVIRONMENT and (near := _near(name)):
            problems.append(f"{variable} is not a setting; did you mean {_PREFIX}{near.upper()}?")
        # Others are left alone: clusters put names such as UNSTUCK_PORT or UNSTUCK_SERVICE_HOST there by themselves.
    return layers


def _parsed(values: Mapping[str, Any], source: str, problems: list[str]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for given, raw in values.items():
        name = _our_name(given)
        if name not in NAMES:
            problems.append(_unknown(given, source))
            continue
        if name in found:
            problems.append(f"{name} was given twice, once as {given} ({source})")
            continue
        try:
            read: Reader = _READERS.get(name) or _duration
            found[name] = read(raw)
        except ValueError as error:
            problems.append(f"{given}={_shown(name, raw)!r} ({source}): {error}")
    return found


def _our_name(name: str) -> str:
    plain = name.replace("-", "_")
    return ALIASES.get(plain, plain)


def _unknown(name: str, source: str) -> str:
    near = _near(name)
    return f"{name} ({source}) is not a setting" + (
        f"; did you mean {near}?" if near else f"; known: {', '.join(sorted(NAMES))}"
    )


def _near(name: str) -> str | None:
    from difflib import get_close_matches

    close = get_close_matches(name.replace("-", "_"), [*NAMES, *ALIASES], n=1, cutoff=0.75)
    return close[0] if close else None


# --- how values are read --------------------------------------------------------------------------------------

Reader = Callable[[Any], Any]


def _duration(value: Any) -> float:
    duration = seconds(value)
    if not 0 <= duration < float("inf"):
        raise ValueError("not a number of seconds of 0 or more")
    return duration


def _time_limit(value: Any) -> Any:
    return "unlimited" if value == "unlimited" else _duration(value)


def _perhaps(reader: Reader) -> Reader:
    return lambda value: None if value in ("none", "") else reader(value)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or not re.fullmatch(r"[+-]?[0-9]+", str(value).strip()):
        raise ValueError("not a whole number")
    return int(value)


def _factor(value: Any) -> float:
    try:
        if isinstance(value, bool):
            raise ValueError
        return plain_float(value) if isinstance(value, str) else float(value)
    except (TypeError, ValueError):
        raise ValueError("not a number") from None


def byte_count(value: Any) -> int:
    """1073741824, "512M", "2G", "2GiB": powers of 1024."""
    if isinstance(value, int) and not isinstance(value, bool):
        return value
    match = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)([kmgt]?)(?:i?b)?", str(value).strip().lower().replace(" ", ""))
    if match is None:
        raise ValueError('not a size; write 512M, "2G" or a number of bytes')
    return int(float(match[1]) * 1024 ** " kmgt".index(match[2] or " "))


def _flag(value: Any) -> bool:
    known = {"true": True, "1": True, "yes": True, "on": True, "false": False, "0": False, "no": False, "off": False}
    try:
        return known[str(value).lower()]
    except KeyError:
        raise ValueError("neither true nor false") from None


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise ValueError("not a text")
    if not value.strip():
        raise ValueError("empty; say what it is, or leave it out")
    return value.strip()


def _place(value: Any) -> str:
    """A path, or what would stand in the file."""
    return _text(os.fspath(value) if isinstance(value, os.PathLike) else value)


def _names(value: Any) -> tuple[str, ...]:
    parts = value.split(",") if isinstance(value, str) else value
    if not isinstance(parts, list | tuple) or not all(isinstance(part, str) for part in parts):
        raise ValueError("not a list of names")
    return tuple(part.strip() for part in parts if part.strip())


def _budget(value: Any) -> tuple[tuple[str, float], ...]:
    """{"tokens": 1000}, or "tokens=1000,euros=2.5"; "none" limits nothing."""
    given = value
    if isinstance(value, str):
        pairs = [part.partition("=") for part in value.split(",") if part.strip()] if value.strip() != "none" else []
        given = {unit.strip(): _factor(most.strip()) for unit, _, most in pairs}
    if not isinstance(given, Mapping):
        raise ValueError('not a budget; write "tokens=1000,euros=2.5"')
    try:
        return Policy().with_("budget", {"budget": given}).budget
    except InvalidPolicy as error:
        raise ValueError("; ".join(error.problems)) from None


def _one_of(*allowed: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if value not in allowed:
            from difflib import get_close_matches

            near = get_close_matches(str(value), allowed, n=1)
            raise ValueError(f"not one of {', '.join(allowed)}" + (f"; did you mean {near[0]}?" if near else ""))
        return str(value)

    return read


_OWN = {f.name for f in fields(Settings)} - {"times", "policy", "origins"}
_TIMES = {f.name for f in fields(Times)}
_POLICY = {f.name for f in fields(Policy)}
NAMES = frozenset(_OWN | _TIMES | _POLICY)

_READERS: dict[str, Reader] = {
    "database": _text,
    "app": _text,
    "tenant": _text,
    "queues": _names,
    "concurrency": _whole,
    "processes": _whole,
    "max_jobs_per_process": _perhaps(_whole),
    "max_memory": _perhaps(byte_count),
    "memory_limit": _perhaps(byte_count),
    "ready_file": _perhaps(_text),
    "health_port": _perhaps(_whole),
    "health_host": _text,
    "log_format": _one_of("auto", "human", "json"),
    "preset": _one_of(*PRESETS),
    "token_limit": _perhaps(_whole),
    "signing_keys": _perhaps(_place),
    "require_signature": _names,
    "sealing_keys": _perhaps(_place),
    "timeout": _time_limit,
    "retries": _whole,
    "max_lost": _whole,
    "suspect_runs": _whole,
    "max_retries": _perhaps(_whole),
    "on_lost": _one_of("retry", "fail", "pause"),
    "on_drain_timeout": _one_of("requeue", "pause", "expire"),
    "on_failure": _one_of("block", "continue"),
    "on_blacklist": _one_of("fail", "hold"),
    "dead_letter": _one_of("never", "exhausted"),
    "budget_scope": _one_of("job", "tree"),
    "budget": _budget,
    "retry_on_timeout": _flag,
    "expires_after": _perhaps(_duration),
    "isolation": _one_of("shared", "process"),
    "backoff_factor": _factor,
    "max_result": byte_count,
}


def _shown(name: str, value: Any) -> Any:
    if name == "budget" and isinstance(value, tuple):
        return dict(value)
    if name == "signing_keys" and isinstance(value, str) and "[[key]]" in value:
        return "(the keys themselves)"
    if name == "sealing_keys" and isinstance(value, str) and "=" in value:  # as each ends
        return "(the keys themselves)"
    return masked(value) if name == "database" and isinstance(value, str) else value
