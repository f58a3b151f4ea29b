"""Macros: what the two databases spell differently, so that one text serves both.

job {in :jobs BIGINT}                        one of a list that is a parameter
FROM {list :jobs AS r (job BIGINT)}          that list as rows of one column
FROM {rows :rows AS r (job BIGINT, at TEXT)} a list of objects (one JSON document) as rows
{by_key unstuck_jobs AS j ON j.id = r.job}   joins at most one row, found by its key whatever the statistics say
{by_key … FOR SHARE SKIP LOCKED}             and locks it, on PostgreSQL
{by_key_or_null …}                           the same, and the row stays if there is none
{all_by_key unstuck_waits AS w ON …}         joins every such row, by the index that the condition names
{some_by_key unstuck_line AS l ON … ORDER BY l.place LIMIT :most}
                                             the same, and no more than are wanted; USING name says SQLite which index
{exactly r.route o.id}                       an equality that PostgreSQL plans as a range, whatever the statistics say
DELETE FROM t {matching :rows (job BIGINT)}  the rows with these values; more conditions may follow with AND
DELETE FROM t {free t :rows (job BIGINT) WHERE kind = 'expire'}
                                             the same, but for rows that another session has locked
RETURNING {returned job}                     a column of what such a DELETE removed
job {among} SELECT … {end}                   of those that a subquery chose, which is run once and first
{holds w.serves workflows me.workflow}       whether a JSON list, under this name of an object, has that text in it
{holds w.queues me.queue}                    whether a JSON list has it
{within j.queue j.workflow}                  whether a caller who is kept to some queues or workflows may know of it:
                                             :in_queues and :in_workflows are JSON lists; NULL: all
{json w.info} ->> 'slots'                    a column that holds a JSON object; empty, if its row was damaged
{json_object}('a', b), {json_array}(…)       functions that write JSON
{lock FOR UPDATE SKIP LOCKED}                PostgreSQL only: SQLite has one writer
{postgres me.route}{sqlite :route}           where nothing else helps
{bucket waited 1000}                         its bucket (`model/series.py`), where so many make a millisecond
{counts series}, {counts totals}             the columns that `model/series.py` and `totals.py` name
{counts series BIGINT}                       the same with a type, for {rows …}
{counts series SUM s}                        each summed up under its name
{counts series + s}                          SET: what is excluded is added to it
{bytes result}, {binary name}, {greatest}    length in bytes; order by code points, not by a locale; GREATEST or MAX

One may stand inside another: the inner one is read first.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from unstuck.model.series import BOUNDS_MS, BUCKETS, COUNTS
from unstuck.model.totals import COLUMNS

Macro = Callable[[str, bool], str]

_LIST = re.compile(r"(?P<parameter>:\w+)\s+(?P<type>\w+)")
_SOURCE = re.compile(r"(?P<parameter>:\w+)\s+AS\s+(?P<alias>\w+)\s*\((?P<columns>[^()]*)\)")
_JOIN = re.compile(r"(?P<table>\w+)\s+AS\s+(?P<alias>\w+)\s+ON\s+(?P<condition>.*?)(?P<lock>\s+FOR\s.*)?", re.DOTALL)
_HOLDS = re.compile(r"(?P<column>[\w.]+)(?:\s+(?P<name>\w+))?\s+(?P<text>[\w.]+)")
_SOME = re.compile(
    r"(?P<table>\w+)\s+AS\s+(?P<alias>\w+)(?:\s+USING\s+(?P<index>\w+))?\s+ON\s+(?P<condition>.*?)"
    r"(?P<order>\s+ORDER BY\s+[\w., ]+)?\s+LIMIT\s+(?P<most>:\w+)",
    re.DOTALL,
)
_FREE = re.compile(
    r"(?P<table>\w+)\s+(?P<parameter>:\w+)\s*\((?P<columns>[^()]*)\)(?:\s+WHERE\s+(?P<condition>.*))?", re.DOTALL
)
_COUNTS = re.compile(r"(?P<table>series|totals)(?:\s+(?P<how>SUM|\+|BIGINT)(?:\s+(?P<alias>\w+))?)?")
_MATCH = re.compile(r"(?P<parameter>:\w+)\s*\((?P<columns>[^()]*)\)")


class BadMacro(ValueError):
    def __init__(self, name: str, body: str) -> None:
        super().__init__(f"{{{name} {body}}} cannot be read: see the examples in store/drivers/macros.py")


def expand(name: str, body: str, postgres: bool) -> str:
    macro = _MACROS.get(name)
    if macro is None:
        raise BadMacro(name, body)
    try:
        return macro(body.strip(), postgres)
    except ValueError:
        raise BadMacro(name, body) from None


def _in(body: str, postgres: bool) -> str:
    parameter, kind = _parts(_LIST, body)
    return f"= ANY (CAST({parameter} AS {kind}[]))" if postgres else f"IN (SELECT value FROM json_each({parameter}))"


def _list(body: str, postgres: bool) -> str:
    parameter, alias, columns = _parts(_SOURCE, body)
    ((column, kind),) = _columns(columns)
    if postgres:
        return f"unnest(CAST({parameter} AS {kind}[])) AS {alias} ({column})"
    return f"(SELECT value AS {column} FROM json_each({parameter})) AS {alias}"


def _rows(body: str, postgres: bool) -> str:
    parameter, alias, columns = _parts(_SOURCE, body)
    if postgres:
        return f"json_to_recordset(CAST({parameter} AS json)) AS {alias} ({columns})"
    values = ", ".join(f"value ->> '{column}' AS {column}" for column, _ in _columns(columns))
    return f"(SELECT {values} FROM json_each({parameter})) AS {alias}"


def _by_key(body: str, postgres: bool, kind: str = "CROSS JOIN", most: str = "LIMIT 1", end: str = "") -> str:
    table, alias, condition, lock = _parts(_JOIN, body)
    if not postgres:
        return f"{kind} {table} AS {alias} ON {condition}"
    found = f"SELECT {alias}.* FROM {table} AS {alias} WHERE {condition} {most}{lock or ''}"
    return f"{kind} LATERAL ({found}) AS {alias}{end}"


def _by_key_or_null(body: str, postgres: bool) -> str:
    return _by_key(body, postgres, kind="LEFT JOIN", end=" ON TRUE")


def _all_by_key(body: str, postgres: bool) -> str:
    return _by_key(body, postgres, most="OFFSET 0")


def _some_by_key(body: str, postgres: bool) -> str:
    table, alias, index, condition, order, most = _parts(_SOME, body)
    if not postgres:
        return f"CROSS JOIN {table} AS {alias} {f'INDEXED BY {index} ' if index else ''}ON {condition}"
    found = f"SELECT {alias}.* FROM {table} AS {alias} WHERE {condition}{order or ''} LIMIT {most}"
    return f"CROSS JOIN LATERAL ({found}) AS {alias}"


def _exactly(body: str, postgres: bool) -> str:
    column, value = body.split()
    return f"{column} BETWEEN {value} AND {value}" if postgres else f"{column} = {value}"


def _free(body: str, postgres: bool) -> str:
    table, parameter, columns, condition = _parts(_FREE, body)
    names = [name for name, _ in _columns(columns)]
    if not postgres:
        values = ", ".join(f"value ->> '{name}'" for name in names)
        chosen = f"({', '.join(names)}) IN (SELECT {values} FROM json_each({parameter}))"
        return f"WHERE {f'{condition} AND ' if condition else ''}{chosen}"
    given = _rows(f"{parameter} AS given ({columns})", postgres)
    key = " AND ".join([f"found.{condition}"] * bool(condition) + [f"found.{name} = given.{name}" for name in names])
    one = f"SELECT found.ctid AS spot FROM {table} AS found WHERE {key} LIMIT 1 FOR UPDATE SKIP LOCKED"
    return f"WHERE ctid = ANY (ARRAY(SELECT free.spot FROM {given} CROSS JOIN LATERAL ({one}) AS free))"


def _matching(body: str, postgres: bool) -> str:
    parameter, columns = _parts(_MATCH, body)
    names = [name for name, _ in _columns(columns)]
    if postgres:
        given = _rows(f"{parameter} AS given ({columns})", postgres)
        return f"AS found USING {given} WHERE {' AND '.join(f'found.{name} = given.{name}' for name in names)}"
    values = ", ".join(f"value ->> '{name}'" for name in names)
    return f"AS found WHERE ({', '.join(names)}) IN (SELECT {values} FROM json_each({parameter}))"


def _holds(body: str, postgres: bool) -> str:
    column, name, text = _parts(_HOLDS, body)
    if postgres:
        within = column if name else f"""'{{"listed": ' || {column} || '}}'"""
        read = f"CAST({_json(within, postgres)} AS jsonb) -> '{name or 'listed'}'"
        return f"COALESCE({read} @> to_jsonb({text}), FALSE)"
    read = _json(column, postgres) + (f", '$.{name}'" if name else "")
    return f"EXISTS (SELECT 1 FROM json_each({read}) AS listed WHERE listed.value = {text})"


def _json(column: str, postgres: bool) -> str:
    return f"unstuck_json({column})" if postgres else f"CASE WHEN json_valid({column}) THEN {column} ELSE '{{}}' END"


def _within(body: str, postgres: bool) -> str:
    queue, workflow = body.split()
    return f"{_listed(':in_queues', queue, postgres)} AND {_listed(':in_workflows', workflow, postgres)}"


def _listed(names: str, name: str, postgres: bool) -> str:
    given = f"CAST({names} AS TEXT)"
    if postgres:
        return f"({given} IS NULL OR CAST({given} AS jsonb) @> to_jsonb({name}))"
    return f"({given} IS NULL OR EXISTS (SELECT 1 FROM json_each({given}) AS listed WHERE listed.value = {name}))"


def _bucket(body: str, postgres: bool) -> str:
    value, scale = body.split()
    bounds = " ".join(f"WHEN {value} <= {bound * int(scale)} THEN {n}" for n, bound in enumerate(BOUNDS_MS, 1))
    return f"CASE WHEN {value} IS NULL THEN NULL {bounds} ELSE {BUCKETS} END"


def _counts(body: str, postgres: bool) -> str:
    table, how, alias = _parts(_COUNTS, body)
    text = {
        None: "{0}",
        "BIGINT": "{0} BIGINT",
        "SUM": "SUM({1}.{0}) AS {0}",
        "+": "{0} = {1}.{0} + excluded.{0}",
    }[how]
    return ", ".join(text.format(name, alias) for name in (COUNTS if table == "series" else COLUMNS))


def _parts(pattern: re.Pattern[str], body: str) -> tuple[str, ...]:
    found = pattern.fullmatch(body)
    if found is None:
        raise ValueError(body)
    return found.groups()


def _columns(columns: str) -> list[tuple[str, str]]:
    """Names and types, in order: `job BIGINT, amount DOUBLE PRECISION`."""
    split = (column.split(maxsplit=1) for column in columns.split(","))
    return [(name, kind) for name, kind in split]


_MACROS: dict[str, Macro] = {
    "in": _in,
    "list": _list,
    "rows": _rows,
    "by_key": _by_key,
    "by_key_or_null": _by_key_or_null,
    "all_by_key": _all_by_key,
    "some_by_key": _some_by_key,
    "free": _free,
    "matching": _matching,
    "holds": _holds,
    "within": _within,
    "row": lambda body, postgres: ".".join(filter(None, (body, "ctid" if postgres else "rowid"))),
    "json": lambda body, postgres: f"({_json(body, postgres)})",
    "json_object": lambda body, postgres: "json_build_object" if postgres else "json_object",
    "json_array": lambda body, postgres: "json_agg" if postgres else "json_group_array",
    "postgres": lambda body, postgres: body if postgres else "",
    "sqlite": lambda body, postgres: "" if postgres else body,
    "among": lambda body, postgres: "= ANY (ARRAY(" if postgres else "IN (",
    "end": lambda body, postgres: "))" if postgres else ")",
    "returned": lambda body, postgres: f"found.{body}" if postgres else body,
    "lock": lambda body, postgres: body if postgres else "",
    "exactly": _exactly,
    "bucket": _bucket,
    "counts": _counts,
    "greatest": lambda body, postgres: "GREATEST" if postgres else "MAX",
    "bytes": lambda body, postgres: f"octet_length({body})" if postgres else f"length(CAST({body} AS BLOB))",
    "binary": lambda body, postgres: f'{body} COLLATE "C"' if postgres else body,
}
