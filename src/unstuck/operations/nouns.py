"""Every noun, so that the table is whole: for what is made from it (Python's methods, the reference, tests)."""

from __future__ import annotations

from unstuck.operations import alerts as alerts
from unstuck.operations import approvals as approvals
from unstuck.operations import audit as audit
from unstuck.operations import blacklist as blacklist
from unstuck.operations import bulks as bulks
from unstuck.operations import dead_letters as dead_letters
from unstuck.operations import deliveries as deliveries
from unstuck.operations import doctor as doctor
from unstuck.operations import events as events
from unstuck.operations import health as health
from unstuck.operations import hooks as hooks
from unstuck.operations import jobs as jobs
from unstuck.operations import keys as keys
from unstuck.operations import limits as limits
from unstuck.operations import notifications as notifications
from unstuck.operations import pauses as pauses
from unstuck.operations import quarantine as quarantine
from unstuck.operations import queues as queues
from unstuck.operations import schedules as schedules
from unstuck.operations import series as series
from unstuck.operations import sessions as sessions
from unstuck.operations import settings as settings
from unstuck.operations import signing as signing
from unstuck.operations import stats as stats
from unstuck.operations import targets as targets
from unstuck.operations import tenants as tenants
from unstuck.operations import top as top
from unstuck.operations import webhooks as webhooks
from unstuck.operations import workers as workers
from unstuck.operations import workflows as workflows
from unstuck.operations.table import OPERATIONS as OPERATIONS
