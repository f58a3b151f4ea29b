"""What an AsyncClient offers: a property for each noun.

Written by `docs/draw_faces.py` from the table of operations; a test compares the two. Change operations/ instead.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from unstuck.app.async_nouns import (
        AsyncAlertsNoun,
        AsyncApprovalsNoun,
        AsyncAuditNoun,
        AsyncBlacklistNoun,
        AsyncBulksNoun,
        AsyncDeadLettersNoun,
        AsyncDeliveriesNoun,
        AsyncDoctorNoun,
        AsyncEventsNoun,
        AsyncHealthNoun,
        AsyncHooksNoun,
        AsyncJobsNoun,
        AsyncKeysNoun,
        AsyncLimitsNoun,
        AsyncNotificationsNoun,
        AsyncPausesNoun,
        AsyncQuarantineNoun,
        AsyncQueuesNoun,
        AsyncSchedulesNoun,
        AsyncSeriesNoun,
        AsyncSessionsNoun,
        AsyncSettingsNoun,
        AsyncSigningNoun,
        AsyncStatsNoun,
        AsyncTargetsNoun,
        AsyncTenantsNoun,
        AsyncTopNoun,
        AsyncWebhooksNoun,
        AsyncWorkersNoun,
        AsyncWorkflowsNoun,
    )
    from unstuck.app.remote import AsyncEngine


class AsyncFace:
    """A property for each noun."""

    _engine: AsyncEngine

    @property
    def alerts(self) -> AsyncAlertsNoun:
        """What is wrong now, and what was; opened and closed by themselves, by rules whose numbers are settings."""
        from unstuck.app.async_nouns import AsyncAlertsNoun

        return AsyncAlertsNoun(self._engine)

    @property
    def approvals(self) -> AsyncApprovalsNoun:
        """The questions that jobs ask of people, and the answers."""
        from unstuck.app.async_nouns import AsyncApprovalsNoun

        return AsyncApprovalsNoun(self._engine)

    @property
    def audit(self) -> AsyncAuditNoun:
        """Who did what, and when."""
        from unstuck.app.async_nouns import AsyncAuditNoun

        return AsyncAuditNoun(self._engine)

    @property
    def blacklist(self) -> AsyncBlacklistNoun:
        """Workflows of which nothing is accepted or started."""
        from unstuck.app.async_nouns import AsyncBlacklistNoun

        return AsyncBlacklistNoun(self._engine)

    @property
    def bulks(self) -> AsyncBulksNoun:
        """One verb over all the jobs that a filter wants, carried out by the workers."""
        from unstuck.app.async_nouns import AsyncBulksNoun

        return AsyncBulksNoun(self._engine)

    @property
    def dead_letters(self) -> AsyncDeadLettersNoun:
        """What never ran, or ran out of tries: look at it, sign it anew, let it go on, discard or export it."""
        from unstuck.app.async_nouns import AsyncDeadLettersNoun

        return AsyncDeadLettersNoun(self._engine)

    @property
    def deliveries(self) -> AsyncDeliveriesNoun:
        """What is sent to webhooks, and what came of each try."""
        from unstuck.app.async_nouns import AsyncDeliveriesNoun

        return AsyncDeliveriesNoun(self._engine)

    @property
    def doctor(self) -> AsyncDoctorNoun:
        """What is wrong with this installation, why that matters, and what helps."""
        from unstuck.app.async_nouns import AsyncDoctorNoun

        return AsyncDoctorNoun(self._engine)

    @property
    def events(self) -> AsyncEventsNoun:
        """What happens, in the one order that every reader sees; what is published; and events sent to jobs."""
        from unstuck.app.async_nouns import AsyncEventsNoun

        return AsyncEventsNoun(self._engine)

    @property
    def health(self) -> AsyncHealthNoun:
        """One look at everything, for people and for probes."""
        from unstuck.app.async_nouns import AsyncHealthNoun

        return AsyncHealthNoun(self._engine)

    @property
    def hooks(self) -> AsyncHooksNoun:
        """Other systems' calls that start a workflow, signed by a secret that both sides know."""
        from unstuck.app.async_nouns import AsyncHooksNoun

        return AsyncHooksNoun(self._engine)

    @property
    def jobs(self) -> AsyncJobsNoun:
        """List them, look into one, stop it, let it go on, run it again."""
        from unstuck.app.async_nouns import AsyncJobsNoun

        return AsyncJobsNoun(self._engine)

    @property
    def keys(self) -> AsyncKeysNoun:
        """Who may ask over HTTP, about whose things, with which role, and for how long."""
        from unstuck.app.async_nouns import AsyncKeysNoun

        return AsyncKeysNoun(self._engine)

    @property
    def limits(self) -> AsyncLimitsNoun:
        """How many run at once, start in a time, or wait. Those of keys are set here, others with their noun."""
        from unstuck.app.async_nouns import AsyncLimitsNoun

        return AsyncLimitsNoun(self._engine)

    @property
    def notifications(self) -> AsyncNotificationsNoun:
        """News for the operators of the platform, until one of them takes note."""
        from unstuck.app.async_nouns import AsyncNotificationsNoun

        return AsyncNotificationsNoun(self._engine)

    @property
    def pauses(self) -> AsyncPausesNoun:
        """Everything that somebody paused, in one list. Set with their noun: queues, targets, tenants, workflows."""
        from unstuck.app.async_nouns import AsyncPausesNoun

        return AsyncPausesNoun(self._engine)

    @property
    def quarantine(self) -> AsyncQuarantineNoun:
        """What the database refused to write, or somebody holds. Nothing else waits for it."""
        from unstuck.app.async_nouns import AsyncQuarantineNoun

        return AsyncQuarantineNoun(self._engine)

    @property
    def queues(self) -> AsyncQueuesNoun:
        """What waits where, who serves it, and what shuts or limits it."""
        from unstuck.app.async_nouns import AsyncQueuesNoun

        return AsyncQueuesNoun(self._engine)

    @property
    def schedules(self) -> AsyncSchedulesNoun:
        """Cron lines and intervals, when they fire next, and what came of each tick."""
        from unstuck.app.async_nouns import AsyncSchedulesNoun

        return AsyncSchedulesNoun(self._engine)

    @property
    def series(self) -> AsyncSeriesNoun:
        """How many runs ended in each minute, how, and how long they waited and ran. Kept for seven days."""
        from unstuck.app.async_nouns import AsyncSeriesNoun

        return AsyncSeriesNoun(self._engine)

    @property
    def sessions(self) -> AsyncSessionsNoun:
        """The browsers that somebody has logged in with a key. They are begun over HTTP, by `server/sessions.py`;
        here admins see and end them."""
        from unstuck.app.async_nouns import AsyncSessionsNoun

        return AsyncSessionsNoun(self._engine)

    @property
    def settings(self) -> AsyncSettingsNoun:
        """Kept in the database, in force everywhere from the moment they change."""
        from unstuck.app.async_nouns import AsyncSettingsNoun

        return AsyncSettingsNoun(self._engine)

    @property
    def signing(self) -> AsyncSigningNoun:
        """By them nothing starts any more. The keys themselves are in no database."""
        from unstuck.app.async_nouns import AsyncSigningNoun

        return AsyncSigningNoun(self._engine)

    @property
    def stats(self) -> AsyncStatsNoun:
        """How many jobs are in which state, together, or by tenant, queue or workflow."""
        from unstuck.app.async_nouns import AsyncStatsNoun

        return AsyncStatsNoun(self._engine)

    @property
    def targets(self) -> AsyncTargetsNoun:
        """Where jobs run one at a time; whose turn it is, and what blocks."""
        from unstuck.app.async_nouns import AsyncTargetsNoun

        return AsyncTargetsNoun(self._engine)

    @property
    def tenants(self) -> AsyncTenantsNoun:
        """Whose jobs; their shares, pauses and limits."""
        from unstuck.app.async_nouns import AsyncTenantsNoun

        return AsyncTenantsNoun(self._engine)

    @property
    def top(self) -> AsyncTopNoun:
        """One bounded look at queues, running jobs, workers, and what needs somebody."""
        from unstuck.app.async_nouns import AsyncTopNoun

        return AsyncTopNoun(self._engine)

    @property
    def webhooks(self) -> AsyncWebhooksNoun:
        """Events of the feed, sent to a URL as they happen, signed as Standard Webhooks says."""
        from unstuck.app.async_nouns import AsyncWebhooksNoun

        return AsyncWebhooksNoun(self._engine)

    @property
    def workers(self) -> AsyncWorkersNoun:
        """Who runs the jobs, in which processes, and what may be ordered of them."""
        from unstuck.app.async_nouns import AsyncWorkersNoun

        return AsyncWorkersNoun(self._engine)

    @property
    def workflows(self) -> AsyncWorkflowsNoun:
        """What can be run, as its workers registered it; pause and limit it."""
        from unstuck.app.async_nouns import AsyncWorkflowsNoun

        return AsyncWorkflowsNoun(self._engine)
