"""The verbs of the doctor."""

from __future__ import annotations

from unstuck.clock import wall
from unstuck.model.guard import EVERY
from unstuck.store.database import FileReach, ServerReach
from unstuck.store.guard import audit
from unstuck.store.port import ClockOffset, FileStand, LongTransaction, ServerStand, TableStand
from unstuck.store.rows import instant, instant_or_none, span
from unstuck.store.sql_store.verbs import SqlVerbs


class SqlCondition(SqlVerbs):
    def server_stand(self) -> ServerStand | None:
        reach = self._database.reach()
        if not isinstance(reach, ServerReach):
            return None
        (row,) = self._database.read(lambda t: t.all("server_stand"))
        settings = {each["name"]: each["value"] for each in self._database.read(lambda t: t.all("server_settings"))}
        return ServerStand(settings=settings, pool=reach.pool, pooler=reach.pooler, prepares=reach.prepares, **row)

    def file_stand(self) -> FileStand | None:
        reach = self._database.reach()
        if not isinstance(reach, FileReach):
            return None
        (row,) = self._database.read(lambda t: t.all("file_pages"))
        return FileStand(
            path=reach.path,
            sqlite=reach.sqlite,
            kind=reach.kind,
            log=reach.log,
            disk=reach.disk,
            disk_free=reach.disk_free,
            pages=row["pages"],
            free_pages=row["free_pages"],
            page_size=row["page_size"],
        )

    def clock_offset(self) -> ClockOffset | None:
        """It was asked somewhere between sending and answer."""
        if self._database.is_file:
            return None
        before = wall()
        (row,) = self._database.read(lambda t: t.all("wall"))
        after = wall()
        half = (after - before) / 2
        return ClockOffset((instant(row["wall"]) - (before + half)).total_seconds(), abs(half.total_seconds()))

    def has_current_schema(self) -> bool:
        return self._database.has_current_schema()

    def table_stands(self) -> list[TableStand]:
        if self._database.is_file:
            return []
        rows = self._database.read(lambda t: t.all("table_stands"))
        instants = ("vacuumed_at", "analyzed_at")
        return [TableStand(**{**row, **{name: instant_or_none(row[name]) for name in instants}}) for row in rows]

    def long_transactions(self, longer: float) -> list[LongTransaction]:
        if self._database.is_file:
            return []
        rows = self._database.read(lambda t: t.all("long_transactions", longer=span(longer)))
        return [
            LongTransaction(
                what=row["what"],
                pid=row["pid"],
                name=row["name"] or "",
                user=row["who"] or "",
                state=row["state"] or "",
                lasts=None if row["lasts"] is None else row["lasts"] / 1_000_000,
            )
            for row in rows
        ]

    def dead_body_marks(self, late: float, most: int = 100) -> int:
        (row,) = self._database.read(lambda t: t.all("dead_body_marks", late=span(late), most=most))
        return int(row["marks"])

    def fold_log(self, within: float) -> bool:
        return self._database.fold_log(within)

    def analyze(self, within: float) -> None:
        if not self._database.is_file:
            self._database.write(lambda t: t.run("analyze"), within)

    def note_fix(self, by: str, check: str, did: str) -> None:
        self._database.write(lambda t: audit.note(t, by, "doctor.fix", check, EVERY, {"did": did}))
