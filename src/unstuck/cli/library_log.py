"""LibraryLog: what the standard library's loggers say in a worker or a server goes to its log, in its format.

Events of ours come through the same loggers and are told already (`eventlog`). The rest is trouble of our own that is
no event, such as a request that failed, and what libraries warn of.
"""

from __future__ import annotations

import logging
from datetime import UTC, datetime

from unstuck.cli.eventlog import Say
from unstuck.cli.job_lines import clock_text, json_line
from unstuck.cli.output import indented, visible
from unstuck.model.log_lines import scrubbed

_FORMATTER = logging.Formatter()


class LibraryLog(logging.Handler):
    def __init__(self, say: Say, *, as_json: bool) -> None:
        super().__init__(logging.WARNING)
        self._say = say
        self._as_json = as_json

    @classmethod
    def install(cls, say: Say, *, as_json: bool) -> None:
        """At the root, where every logger's records come by."""
        logging.getLogger().addHandler(cls(say, as_json=as_json))

    def emit(self, record: logging.LogRecord) -> None:
        if hasattr(record, "facts"):
            return
        try:
            self._say(self._line(record))
        except Exception:
            self.handleError(record)

    def _line(self, record: logging.LogRecord) -> str:
        at, message = datetime.fromtimestamp(record.created, UTC), record.getMessage()
        error = _FORMATTER.formatException(record.exc_info) if record.exc_info else None
        if self._as_json:
            facts: dict[str, object] = {"level": record.levelname.lower(), "logger": record.name, "message": message}
            return json_line(at, "log", facts | ({"exception": error} if error else {}))
        told = f"{record.levelname} {record.name}: {message}" + (f"\n{error}" if error else "")
        begin = clock_text(at)
        return f"{begin}  {indented(visible(scrubbed(told)), len(begin) + 2)}"
