"""The verbs of those who follow ends."""

from __future__ import annotations

from collections.abc import Sequence

from unstuck.store.database import Transaction
from unstuck.store.guard import isolation
from unstuck.store.life import ends, submit
from unstuck.store.port import EndFacts, EndsPage, FollowedEnd, Follower, LateEnd, WaitingEnd
from unstuck.store.rows import instant, span
from unstuck.store.sql_store.verbs import SqlVerbs


class SqlEnds(SqlVerbs):
    def followers(self) -> list[Follower]:
        return self._database.read(ends.followers)

    def read_ends(self, holder: str, hold: float, kinds: Sequence[str], limit: int, kept: float) -> EndsPage | None:
        return ends.read(self._database, holder, hold, kinds, limit, kept)

    def end_facts(self, asked: Sequence[tuple[str, int]], most: int) -> list[EndFacts]:
        return self._database.read(lambda t: ends.facts(t, asked, most)) if asked else []

    def follow_ends(self, followed: Sequence[FollowedEnd], *, is_part: bool = False) -> int:
        jobs = [each.made for each in followed if each.made is not None]
        patience = isolation.IMPATIENCE if is_part else isolation.PATIENCE
        if not jobs:
            return self._database.write(lambda t: ends.follow(t, followed, None, self._key_life), patience=patience)
        submit.check(jobs)
        new = self._transactions.with_numbers(
            jobs, lambda t, numbers: ends.follow(t, followed, numbers, self._key_life), patience=patience
        )
        if new:
            self._database.hint()
        return new

    def late_ends(self, most: int) -> list[LateEnd]:
        """The look first: where there are none, nothing is written."""
        some = self._database.read(lambda t: t.one("has_late_ends"))
        if some is None or not some["are_some"]:
            return []
        return self._database.write(lambda t: ends.take_late(t, most), patience=isolation.IMPATIENCE)

    def waiting_ends(self, limit: int = 100) -> list[WaitingEnd]:
        rows = self._database.read(lambda t: t.all("waiting_ends", most=limit))
        return [WaitingEnd(row["job"], row["hook"], instant(row["at"]), row["reason"] or "") for row in rows]

    def ends_read(self, holder: str, page: EndsPage) -> bool:
        place = {"holder": holder, "after": page.after, "cursor": page.cursor}
        return self._database.write(lambda t: t.run("move_ends", **place), patience=isolation.IMPATIENCE) == 1

    def stop_reading_ends(self) -> None:
        if self._database.read(lambda t: t.one("reading_ends")) is not None:
            self._database.write(ends.stop, patience=isolation.IMPATIENCE)

    def forget_followed_ends(self, retention: float, batch: int = 1000, past: int = 0) -> int:
        def forget(t: Transaction) -> int:
            t.run("forget_followers")
            return t.run("forget_followed_ends", retention=span(retention), batch=batch, past=past)

        return self._database.write(forget)
