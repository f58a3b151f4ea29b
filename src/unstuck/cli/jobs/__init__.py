"""unstuck jobs …: look at jobs and ask things of them. A module per thing that is looked at; `verbs` changes jobs."""

from __future__ import annotations

from unstuck.cli import options
from unstuck.cli.jobs.flow import partials, steps, tree
from unstuck.cli.jobs.history import history
from unstuck.cli.jobs.list_jobs import list_
from unstuck.cli.jobs.logs import logs
from unstuck.cli.jobs.show import show
from unstuck.cli.jobs.verbs import (
    cancel,
    interrupt,
    release,
    replay,
    reprioritise,
    resolve,
    resume,
    retry,
    run_now,
    skip,
)
from unstuck.cli.jobs.wait import wait

#: The table is in docs/lifecycle.md.
REMARK = """\
Those that begin with R, told apart (docs/lifecycle.md says which states they take):
  resume      the same job goes on; its finished steps are kept
  retry       the same job runs from its start; one that waits for its next try is due now
  replay      a new job with the same arguments; the old one stays as it is
  release     a job that was held goes on
  resolve     the job is COMPLETED with a result that you give; nothing runs"""

app = options.group("List jobs, look into one, wait for it, stop it, let it go on.", default="list", remark=REMARK)
# In the order in which `unstuck jobs --help` lists them.
for verb in (
    list_, show, steps, partials, tree, replay, history, wait, logs,
    cancel, interrupt, resume, release, skip, retry, resolve, reprioritise,
):  # fmt: skip
    app.command()(verb)
app.command("run-now")(run_now)
