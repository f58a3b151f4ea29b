"""CodeCheck: can the app be imported as it is saved now, and what does its code say? Asked beside everything else."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from typing import Any

from unstuck.cli.session import answer, question, took_too_long, without_keys


class CodeCheck:
    """A process of its own imports it: that may take long, hang, or end the process."""

    def __init__(self, app: str, limit: float, environ: Mapping[str, str], now: float) -> None:
        self._app, self._limit, self._until = app, limit, now + limit
        # Files without a name: a pipe would have to be read while we wait.
        with ExitStack() as files:
            self._out, self._err = (files.enter_context(tempfile.TemporaryFile()) for _ in range(2))
            how: dict[str, Any] = {"stdin": subprocess.DEVNULL, "stdout": self._out, "stderr": self._err}
            self._process = subprocess.Popen(question(app), start_new_session=True, env=without_keys(environ), **how)
            self._files = files.pop_all()

    def answer(self, now: float) -> dict[str, dict[str, Any]] | None:
        """What its code says; None: it is still being imported. InvalidInput: why it cannot be."""
        code = self._process.poll()
        if code is None:
            if now < self._until:
                return None
            self.cancel()
            raise took_too_long(self._app, self._limit)
        with self._files:
            said = [_text(file) for file in (self._out, self._err)]
        return answer(self._app, code, *said)

    def cancel(self) -> None:
        self._process.kill()
        self._process.wait()
        self._files.close()


def _text(file: Any) -> str:
    file.seek(0)
    return str(file.read().decode("utf-8", "replace"))
