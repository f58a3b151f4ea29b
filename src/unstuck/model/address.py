"""The address of a database, as people may see it."""

from __future__ import annotations

import re

#: The driver ends a password at the first @ that no / precedes; a person means the last one before the options.
_PASSWORD = re.compile(r"(://[^:/@?#]*):(?:[^?]*|[^@/]*)@")
_SECRET_OPTION = re.compile(r"((?:pass(?:word|file)?|sslpassword)\s*=\s*)('[^']*'|[^&\s]+)", re.IGNORECASE)


def masked(url: str) -> str:
    """A database URL without its password, wherever it stands."""
    return _SECRET_OPTION.sub(r"\1***", _PASSWORD.sub(r"\1:***@", url))
