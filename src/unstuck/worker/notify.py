"""What a service manager hears (systemd's protocol: datagrams of NAME=value lines). Never raises, never waits."""

from __future__ import annotations

import socket
from collections.abc import Mapping


class Notifier:
    """`address` is NOTIFY_SOCKET: a path, or with a leading @ an abstract name. Without one nothing is said."""

    def __init__(self, address: str | None = None, watchdog: float | None = None) -> None:
        self._address = _readable(address)
        #: Seconds after which the service manager takes our silence for death, if it does.
        self.watchdog = watchdog

    @classmethod
    def of(cls, environ: Mapping[str, str], pid: int) -> Notifier:
        return cls(environ.get("NOTIFY_SOCKET"), _watchdog(environ, pid))

    def say(self, *lines: str) -> bool:
        """Whether it was heard; a manager that does not listen is no trouble of ours."""
        if self._address is None:
            return False
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as speaker:
                speaker.setblocking(False)
                speaker.sendto("\n".join(lines).encode("utf-8", "replace"), self._address)
            return True
        except (OSError, ValueError):
            return False


def _readable(address: str | None) -> str | None:
    """Other families (vsock) are not for us."""
    if not address or address[0] not in "/@":
        return None
    return "\0" + address[1:] if address[0] == "@" else address


def _watchdog(environ: Mapping[str, str], pid: int) -> float | None:
    """Meant for us only if it names our pid, or none."""
    if environ.get("WATCHDOG_PID", str(pid)) != str(pid):
        return None
    try:
        seconds = int(environ.get("WATCHDOG_USEC", "")) / 1e6
    except (ValueError, OverflowError):
        # No number, or one that no clock will ever reach.
        return None
    return seconds if seconds > 0 else None
