"""A steady trickle of work for the example app: what is enqueued next, and which jobs get cancelled."""

from __future__ import annotations

from collections import deque
from datetime import datetime
from typing import Any

from unstuck.chance import Chance
from unstuck.examples import demo as shop
from unstuck.model.errors import Conflict, NotBlacklisted, UnknownJob, WorkflowBlacklisted

NAMES = ("Ada", "Grace", "Linus", "Barbara", "Guido", "Radia", "Dennis", "Margaret")
ITEMS = ("lamp", "kettle", "bicycle", "piano", "umbrella")
REPEATED = (shop.CULPRITS[0], *shop.CULPRITS)
MANAGER = "Margaret"
#: How long a question stays for you to answer, and a target blocked for you to free it.
PATIENCE = 30.0
#: So many stuck executions are too many here, so that nobody has to watch for long.
THRESHOLD = 2


class Trickle:
    """One step is one thing that happens in the shop; the round repeats with other numbers."""

    def __init__(self, chance: Chance) -> None:
        # Keys are remembered for a day: a second demo on the same file must not reuse those of the first.
        self.season = chance.nonce()[:6]
        self._place = 0
        self._decided = 0
        self._doomed: deque[Any] = deque()
        self._round = [
            self._greet,
            self._check_stock,
            self._charge_card,
            self._lift,
            self._get_stuck,
            self._render_video,
            self._convert_image,
            self._count_primes,
            self._invoice_twice,
            self._remind_later,
            self._deliver,
            self._release,
            self._print_labels,
            self._cancel_one,
            self._call_partner,
            self._import_feed,
            self._greet_the_boss,
            self._skip_failed,
            self._decide,
        ]

    def lose_patience(self) -> None:
        """For the demo's own file. A threshold that was set there stays."""
        name = "stuck_circuit_breaker_threshold"
        if all(record.name != name or record.set_by is None for record in shop.app.settings.list()):
            shop.app.settings.set(name, THRESHOLD, by="the demo")

    def step(self) -> None:
        lap, place = divmod(self._place, len(self._round))
        self._place += 1
        self._round[place](lap + 1)

    def _greet(self, lap: int) -> None:
        shop.greet.enqueue(NAMES[lap % len(NAMES)])

    def _check_stock(self, lap: int) -> None:
        shop.check_stock.enqueue_many([(item, 0.2 * place) for place, item in enumerate(ITEMS)])

    def _charge_card(self, lap: int) -> None:
        shop.charge_card.enqueue(lap, bad_days=lap % 3)

    def _render_video(self, lap: int) -> None:
        job = shop.render_video.enqueue(30 + lap % 3 * 10)
        if lap % 2:
            self._doomed.append(job)

    def _convert_image(self, lap: int) -> None:
        if lap % 3 == 1:
            shop.convert_image.enqueue(f"photo-{lap}.png")

    def _count_primes(self, lap: int) -> None:
        shop.count_primes.enqueue(2_000_000 + lap)

    def _invoice_twice(self, lap: int) -> None:
        once = shop.send_invoice.using(key=f"invoice-{self.season}-{lap}")
        once.enqueue(lap)
        once.enqueue(lap)  # a client that was not sure whether its first call arrived: the same job

    def _remind_later(self, lap: int) -> None:
        shop.remind.using(delay=5).enqueue(NAMES[lap % len(NAMES)])

    def _deliver(self, lap: int) -> None:
        """Every second time nobody is at home, and what else that customer gets waits behind the first."""
        customer = NAMES[lap % len(NAMES)]
        shop.deliver.enqueue(customer, ITEMS[lap % len(ITEMS)], at_home=lap % 2 == 0)
        shop.deliver.enqueue_many([(customer, item) for item in ITEMS[:2]])

    def _skip_failed(self, lap: int) -> None:
        """Once it could be looked at; what an earlier demo left behind too."""
        for target in shop.app.targets.list(blocked=True):
            if target.blocked_at is None or not self._has_waited(target.blocked_at):
                continue
            try:
                shop.app.job(target.blocked_by or "").skip(by="the shop")
            except (Conflict, UnknownJob):
                pass  # somebody at another terminal was faster

    def _release(self, lap: int) -> None:
        shop.release.enqueue(f"1.{lap}", flaky=lap % 3 == 2)

    def _decide(self, lap: int) -> None:
        """The release manager looks in once a lap, and leaves to you what was asked only a moment ago."""
        for approval in shop.app.approvals.list():
            if approval.workflow != shop.release.name or not self._has_waited(approval.asked_at):
                continue
            self._decided += 1
            try:
                if self._decided % 3:
                    shop.app.approvals.approve(approval.job, key=approval.key, by=MANAGER)
                else:
                    shop.app.approvals.reject(approval.job, key=approval.key, by=MANAGER, comment="not on a Friday")
            except (Conflict, UnknownJob):
                pass  # somebody at another terminal was faster

    def _has_waited(self, since: datetime) -> bool:
        return (shop.app._engine.store.now() - since).total_seconds() >= PATIENCE

    def _get_stuck(self, lap: int) -> None:
        """Every second lap a job that does not stop, and beside it some that must not suffer from it. The first
        culprit has two turns: that is once too often, and the job that would come later is not started any more."""
        if lap % 2 == 0:
            return
        culprit = REPEATED[lap // 2 % len(REPEATED)]
        shop.render_video.enqueue_many([(75,), (75,)])
        try:
            culprit.enqueue()
            if lap // 2 % len(REPEATED) == 1:
                culprit.using(delay=7).enqueue()
        except WorkflowBlacklisted:
            pass  # as any caller is told, until somebody lifts it

    def _lift(self, lap: int) -> None:
        """After some laps in which it could be looked at, and what an earlier demo left. Nobody else's entries."""
        for entry in shop.app.blacklist.list() if lap % 6 in (0, 1) else ():
            if entry.auto and entry.workflow in [culprit.name for culprit in shop.CULPRITS]:
                try:
                    shop.app.blacklist.remove(entry.workflow, tenant=entry.tenant, by="the shop")
                except NotBlacklisted:
                    pass  # somebody at another terminal was faster

    def _print_labels(self, lap: int) -> None:
        shop.print_label.enqueue_many([(lap * 10 + place,) for place in range(4)])

    def _cancel_one(self, lap: int) -> None:
        if not self._doomed:
            return
        try:
            self._doomed.popleft().cancel("the customer changed their mind")
        except Conflict:
            pass  # it was faster than the customer

    def _call_partner(self, lap: int) -> None:
        shop.call_partner.enqueue(8.0 if lap % 3 == 1 else 0.5)

    def _import_feed(self, lap: int) -> None:
        if lap % 4 == 2:
            shop.import_feed.enqueue(f"https://shop.example/feed-{lap}")

    def _greet_the_boss(self, lap: int) -> None:
        shop.greet.using(priority=10).enqueue("the boss, who never waits")
