"""What an App offers besides its workflows: a property for each noun.

A noun is imported when it is first asked for: every executor imports the App, and most ask for none.

Written by `docs/draw_faces.py` from the table of operations; a test compares the two. Change operations/ instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unstuck.app.engine import Engine
    from unstuck.app.nouns import (
        AlertsNoun,
        ApprovalsNoun,
        AuditNoun,
        BlacklistNoun,
        BulksNoun,
        DeadLettersNoun,
        DeliveriesNoun,
        DoctorNoun,
        EventsNoun,
        HealthNoun,
        HooksNoun,
        JobsNoun,
        KeysNoun,
        LimitsNoun,
        NotificationsNoun,
        PausesNoun,
        QuarantineNoun,
        QueuesNoun,
        SchedulesNoun,
        SeriesNoun,
        SessionsNoun,
        SettingsNoun,
        SigningNoun,
        StatsNoun,
        TargetsNoun,
        TenantsNoun,
        TopNoun,
        WebhooksNoun,
        WorkersNoun,
        WorkflowsNoun,
    )


class Face:
    """A property for each noun."""

    _engine: Engine

    @property
    def alerts(self) -> AlertsNoun:
        """What is wrong now, and what was; opened and closed by themselves, by rules whose numbers are settings."""
        from unstuck.app.nouns import AlertsNoun

        return AlertsNoun(self._engine)

    @property
    def approvals(self) -> ApprovalsNoun:
        """The questions that jobs ask of people, and the answers."""
        from unstuck.app.nouns import ApprovalsNoun

        return ApprovalsNoun(self._engine)

    @property
    def audit(self) -> AuditNoun:
        """Who did what, and when."""
        from unstuck.app.nouns import AuditNoun

        return AuditNoun(self._engine)

    @property
    def blacklist(self) -> BlacklistNoun:
        """Workflows of which nothing is accepted or started."""
        from unstuck.app.nouns import BlacklistNoun

        return BlacklistNoun(self._engine)

    @property
    def bulks(self) -> BulksNoun:
        """One verb over all the jobs that a filter wants, carried out by the workers."""
        from unstuck.app.nouns import BulksNoun

        return BulksNoun(self._engine)

    @property
    def dead_letters(self) -> DeadLettersNoun:
        """What never ran, or ran out of tries: look at it, sign it anew, let it go on, discard or export it."""
        from unstuck.app.nouns import DeadLettersNoun

        return DeadLettersNoun(self._engine)

    @property
    def deliveries(self) -> DeliveriesNoun:
        """What is sent to webhooks, and what came of each try."""
        from unstuck.app.nouns import DeliveriesNoun

        return DeliveriesNoun(self._engine)

    @property
    def doctor(self) -> DoctorNoun:
        """What is wrong with this installation, why that matters, and what helps."""
        from unstuck.app.nouns import DoctorNoun

        return DoctorNoun(self._engine)

    @property
    def events(self) -> EventsNoun:
        """What happens, in the one order that every reader sees; what is published; and events sent to jobs."""
        from unstuck.app.nouns import EventsNoun

        return EventsNoun(self._engine)

    @property
    def health(self) -> HealthNoun:
        """One look at everything, for people and for probes."""
        from unstuck.app.nouns import HealthNoun

        return HealthNoun(self._engine)

    @property
    def hooks(self) -> HooksNoun:
        """Other systems' calls that start a workflow, signed by a secret that both sides know."""
        from unstuck.app.nouns import HooksNoun

        return HooksNoun(self._engine)

    @property
    def jobs(self) -> JobsNoun:
        """List them, look into one, stop it, let it go on, run it again."""
        from unstuck.app.nouns import JobsNoun

        return JobsNoun(self._engine)

    @property
    def keys(self) -> KeysNoun:
        """Who may ask over HTTP, about whose things, with which role, and for how long."""
        from unstuck.app.nouns import KeysNoun

        return KeysNoun(self._engine)

    @property
    def limits(self) -> LimitsNoun:
        """How many run at once, start in a time, or wait. Those of keys are set here, others with their noun."""
        from unstuck.app.nouns import LimitsNoun

        return LimitsNoun(self._engine)

    @property
    def notifications(self) -> NotificationsNoun:
        """News for the operators of the platform, until one of them takes note."""
        from unstuck.app.nouns import NotificationsNoun

        return NotificationsNoun(self._engine)

    @property
    def pauses(self) -> PausesNoun:
        """Everything that somebody paused, in one list. Set with their noun: queues, targets, tenants, workflows."""
        from unstuck.app.nouns import PausesNoun

        return PausesNoun(self._engine)

    @property
    def quarantine(self) -> QuarantineNoun:
        """What the database refused to write, or somebody holds. Nothing else waits for it."""
        from unstuck.app.nouns import QuarantineNoun

        return QuarantineNoun(self._engine)

    @property
    def queues(self) -> QueuesNoun:
        """What waits where, who serves it, and what shuts or limits it."""
        from unstuck.app.nouns import QueuesNoun

        return QueuesNoun(self._engine)

    @property
    def schedules(self) -> SchedulesNoun:
        """Cron lines and intervals, when they fire next, and what came of each tick."""
        from unstuck.app.nouns import SchedulesNoun

        return SchedulesNoun(self._engine)

    @property
    def series(self) -> SeriesNoun:
        """How many runs ended in each minute, how, and how long they waited and ran. Kept for seven days."""
        from unstuck.app.nouns import SeriesNoun

        return SeriesNoun(self._engine)

    @property
    def sessions(self) -> SessionsNoun:
        """The browsers that somebody has logged in with a key. They are begun over HTTP, by `server/sessions.py`;
        here admins see and end them."""
        from unstuck.app.nouns import SessionsNoun

        return SessionsNoun(self._engine)

    @property
    def settings(self) -> SettingsNoun:
        """Kept in the database, in force everywhere from the moment they change."""
        from unstuck.app.nouns import SettingsNoun

        return SettingsNoun(self._engine)

    @property
    def signing(self) -> SigningNoun:
        """By them nothing starts any more. The keys themselves are in no database."""
        from unstuck.app.nouns import SigningNoun

        return SigningNoun(self._engine)

    @property
    def stats(self) -> StatsNoun:
        """How many jobs are in which state, together, or by tenant, queue or workflow."""
        from unstuck.app.nouns import StatsNoun

        return StatsNoun(self._engine)

    @property
    def targets(self) -> TargetsNoun:
        """Where jobs run one at a time; whose turn it is, and what blocks."""
        from unstuck.app.nouns import TargetsNoun

        return TargetsNoun(self._engine)

    @property
    def tenants(self) -> TenantsNoun:
        """Whose jobs; their shares, pauses and limits."""
        from unstuck.app.nouns import TenantsNoun

        return TenantsNoun(self._engine)

    @property
    def top(self) -> TopNoun:
        """One bounded look at queues, running jobs, workers, and what needs somebody."""
        from unstuck.app.nouns import TopNoun

        return TopNoun(self._engine)

    @property
    def webhooks(self) -> WebhooksNoun:
        """Events of the feed, sent to a URL as they happen, signed as Standard Webhooks says."""
        from unstuck.app.nouns import WebhooksNoun

        return WebhooksNoun(self._engine)

    @property
    def workers(self) -> WorkersNoun:
        """Who runs the jobs, in which processes, and what may be ordered of them."""
        from unstuck.app.nouns import WorkersNoun

        return WorkersNoun(self._engine)

    @property
    def workflows(self) -> WorkflowsNoun:
        """What can be run, as its workers registered it; pause and limit it."""
        from unstuck.app.nouns import WorkflowsNoun

        return WorkflowsNoun(self._engine)
