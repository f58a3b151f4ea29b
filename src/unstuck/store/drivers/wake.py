"""Wake: how processes that share a SQLite file tell each other about new work. A hint only; everybody polls too.

A process binds a unix datagram socket, at its first wait and for good, in a folder that all of them derive from the
file's path; a hint is one datagram to each. The folder is in the temporary directory, because a socket's address has
only 108 bytes.
"""

from __future__ import annotations

import os
import select
import stat
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from unstuck.chance import SystemChance
from unstuck.store.hint import ANYWHERE, Hint

if TYPE_CHECKING:
    import socket


class Wake:
    def __init__(self, database: Path) -> None:
        self._database = database
        self._socket: socket.socket | None = None
        self._address: Path | None = None

    @cached_property
    def _folder(self) -> Path:
        """Looked up by who waits or hints; a question that is asked and answered does neither."""
        import hashlib
        import tempfile

        name = hashlib.sha256(os.fsencode(os.path.realpath(self._database))).hexdigest()[:16]
        return Path(tempfile.gettempdir()) / f"unstuck-{os.getuid()}-{name}"

    def hint(self, hint: Hint = ANYWHERE) -> None:
        """One datagram to whoever is idle; nobody idle costs one listing of an empty folder."""
        waiting = self.waiting()
        if not waiting:
            return
        import socket

        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sender:
                sender.setblocking(False)
                for name in waiting:
                    self._poke(sender, self._folder / name, hint)
        except OSError:
            pass  # no descriptor left: whoever waits polls anyway

    def waiting(self) -> list[str]:
        try:
            return os.listdir(self._folder)
        except OSError:
            return []

    def wait(self, timeout: float) -> Hint | None:
        """Hints that came since the last wait count too, so nothing slips between a look and the sleep after it. The
        first wait answers at once: before it nobody could hint to us, so there may be something to look at."""
        if self._socket is None:
            self._listen()
            return ANYWHERE
        listening = self._socket
        poller = select.poll()  # select() refuses descriptors above 1023
        poller.register(listening, select.POLLIN)
        if not poller.poll(max(0.0, timeout) * 1000) and self._address is not None and not self._address.exists():
            self.abandon()  # somebody cleaned up the temporary directory: nobody finds us there
            return None
        words = self._take_hints(listening)
        # Where two wait there may have been no room for a third, which could have named another route.
        return Hint.heard(words) if len(words) < 2 else ANYWHERE

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        if self._address is not None:
            self._address.unlink(missing_ok=True)
        self._socket = self._address = None
        if "_folder" not in vars(self):
            return
        try:
            self._folder.rmdir()
        except OSError:
            pass  # others wait there, or nobody ever did

    def abandon(self) -> None:
        """Only our socket goes, not the address: in a forked child it is the parent's. The next wait makes one."""
        if self._socket is not None:
            self._socket.close()
        self._socket = self._address = None

    def _listen(self) -> None:
        import socket

        self._make_folder()  # and should its last user take it away now, this wait is without hints
        address = self._folder / f"{os.getpid()}-{SystemChance().nonce()[:8]}"
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        listening.setblocking(False)
        listening.bind(str(address))
        self._socket, self._address = listening, address

    def _make_folder(self) -> None:
        """Ours alone: in a shared temporary directory another user could have made it first."""
        self._folder.mkdir(mode=0o700, exist_ok=True)
        facts = self._folder.lstat()
        if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.getuid():
            raise PermissionError(f"{self._folder} belongs to somebody else")

    def _poke(self, sender: socket.socket, address: Path, hint: Hint) -> None:
        try:
            sender.sendto(hint.word.encode() or b"!", str(address))
        except ConnectionRefusedError:
            address.unlink(missing_ok=True)  # its process died without taking it away
        except OSError:
            pass  # a full buffer means it is being woken already

    def _take_hints(self, listening: socket.socket) -> list[bytes]:
        words: list[bytes] = []
        try:
            while True:
                words.append(listening.recv(32))
        except OSError:
            return words
