"""What a host says of itself: whether the app can be imported here, the workers that are its processes, and how long
their service manager lets them stop."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

from unstuck import machine
from unstuck.cli.asking import Asker
from unstuck.cli.session import told_by
from unstuck.model.errors import InvalidInput
from unstuck.model.job import WorkerRecord
from unstuck.model.wording import duration
from unstuck.operations.examinations.exam import DoctorCheck, finding
from unstuck.records import dataclass
from unstuck.store.port import Store
from unstuck.views.doctor import FindingView

#: Seconds that a check of this host may take; an app has `import_limit` of its own.
WITHIN = 70.0
#: Seconds that `systemctl` may take to answer.
ASKED_WITHIN = 3.0
#: What Kubernetes waits after TERM, where nobody says otherwise.
KUBERNETES_STOP = 30.0


@dataclass(frozen=True, slots=True)
class Host:
    """This one. `app`: the one that flags, environment or files name."""

    asker: Asker
    app: str | None

    @property
    def store(self) -> Store | None:
        return self.asker.store

    def workers(self) -> list[WorkerRecord]:
        """Those whose lease holds and whose pids are ours to look at; over a server nobody can say."""
        return [] if self.store is None else self.store.live_workers((machine.boot_id(), machine.pid_namespace()))


def imports(host: Host) -> Iterator[FindingView]:
    if host.app is None:
        return
    try:
        told_by(host.app, host.asker.settings.times.import_limit)
    except InvalidInput as error:
        yield finding(
            "app",
            "error",
            f"app {host.app}",
            str(error),
            "no worker on this host can run its jobs",
            f"python -c 'import {host.app.partition(':')[0]}'",
        )


def processes(host: Host) -> Iterator[FindingView]:
    for worker in host.workers():
        if machine.is_gone(worker.pid, worker.pid_start):
            yield finding(
                "host_workers",
                "warning",
                f"worker {worker.name}",
                f"its process {worker.pid} is gone, and its lease still holds",
                "its jobs run again elsewhere once the lease is over; nobody has to do anything for them",
                "start it again, and look into its log for why it went",
            )


def service_manager(host: Host) -> Iterator[FindingView]:
    for worker in host.workers():
        unit = unit_of(_text(Path(f"{machine.PROC}/{worker.pid}/cgroup")))
        allowed = stop_time_of(unit) if unit else None
        wanted = _wanted(worker)
        if unit and allowed is not None and wanted is not None and allowed < wanted:
            yield finding(
                "service_manager",
                "warning",
                f"worker {worker.name}, unit {unit}",
                f"it may take {duration(wanted)} to stop, and systemd kills it after {duration(allowed)}",
                "jobs are killed in the middle of the drain, and run again elsewhere",
                f"systemctl edit {unit}: [Service] TimeoutStopSec={wanted:g}; or --drain {max(0.0, allowed - 15):g}",
            )
    settings = host.asker.settings
    wanted = settings.times.drain + settings.times.kill_grace
    if "KUBERNETES_SERVICE_HOST" in os.environ and settings.stop_time is None and wanted > KUBERNETES_STOP:
        yield finding(
            "service_manager",
            "note",
            "this pod",
            f"a worker with these settings may take {duration(wanted)} to stop; Kubernetes waits "
            f"{KUBERNETES_STOP:g} s unless the pod says otherwise, which cannot be seen from inside",
            "jobs are killed in the middle of the drain, and run again elsewhere",
            f"terminationGracePeriodSeconds: {wanted:g}, and UNSTUCK_STOP_TIME={wanted:g} so that it is known here",
        )


def _wanted(worker: WorkerRecord) -> float | None:
    said = [worker.info.get(name) for name in ("drain", "kill_grace")]
    numbers = [float(each) for each in said if isinstance(each, int | float) and not isinstance(each, bool)]
    return sum(numbers) if len(numbers) == len(said) else None


def unit_of(cgroup: str) -> str | None:
    """The service of systemd that a process belongs to, by the last part of its path that names one."""
    found = re.findall(r"([^/\n]+\.service)(?=/|\n|$)", cgroup)
    return found[-1] if found else None


def stop_time_of(unit: str) -> float | None:
    """In seconds; None: for ever, or nobody says."""
    command = ["systemctl", "show", "--property", "TimeoutStopUSec", "--value", "--", unit]
    try:
        asked = subprocess.run(
            command, capture_output=True, text=True, timeout=ASKED_WITHIN, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return read_span(asked.stdout) if asked.returncode == 0 else None


_UNITS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}


def read_span(text: str) -> float | None:
    """As systemd writes one: 1min 30s."""
    words = text.split()
    parts = [re.fullmatch(r"([0-9.]+)(us|ms|s|min|h|d|w)", word) for word in words]
    if not words or not all(parts):
        return None
    return sum(float(part[1]) * _UNITS[part[2]] for part in parts if part is not None)


def _text(path: Path) -> str:
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


CHECKS: tuple[DoctorCheck[Host], ...] = (
    DoctorCheck("app", "whether the app can be imported here", imports),
    DoctorCheck("host_workers", "workers of this host whose process is gone", processes),
    DoctorCheck("service_manager", "whether the service manager lets workers of this host drain", service_manager),
)
