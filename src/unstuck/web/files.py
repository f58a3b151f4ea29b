"""The page's files, read once: what each is, and how caches know it.

There is no build step: a browser loads the modules of `static/` themselves. All of them stand below one folder that
is named after what they hold, `static/<digest>/`, so that a cache may keep them for good, and modules of two releases
are never mixed in one page. Only `index.html` has a place of its own, and is asked for each time.
"""

from __future__ import annotations

import gzip
from collections.abc import Iterator
from functools import cached_property
from hashlib import blake2b
from html import escape
from importlib.resources import files
from importlib.resources.abc import Traversable
from urllib.parse import unquote

from unstuck.records import dataclass

#: The first words of the page's own paths; static/routes.js says what is shown there.
SCREENS = frozenset(
    {
        "alerts",
        "approvals",
        "audit",
        "blacklist",
        "bulks",
        "dead-letters",
        "hooks",
        "jobs",
        "keys",
        "notifications",
        "platform",
    }
    | {"quarantine", "queues", "schedules", "settings", "targets", "tenants", "webhooks", "workers", "workflows"}
)
STATIC = "/static/"

_SHELL = "index.html"
_TYPES = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
}
_PLAIN = "text/plain; charset=utf-8"
#: Smaller ones fit into a packet as they are.
_LEAST_GZIPPED = 1000


@dataclass(frozen=True)
class WebFile:
    """`for_good`: what stands at its address never changes."""

    body: bytes
    media_type: str
    for_good: bool = False

    @cached_property
    def tag(self) -> str:
        return f'"{blake2b(self.body, digest_size=16).hexdigest()}"'

    @cached_property
    def gzipped(self) -> bytes | None:
        return gzip.compress(self.body, 6, mtime=0) if len(self.body) >= _LEAST_GZIPPED else None


class WebFiles:
    def __init__(self) -> None:
        self._bodies = dict(_walk(files("unstuck.web") / "static"))
        digest = blake2b(digest_size=8)
        for name in sorted(self._bodies):
            digest.update(name.encode() + b"\0" + self._bodies[name])
        self.digest = digest.hexdigest()
        self._files = {name: WebFile(body, _type_of(name), for_good=True) for name, body in self._bodies.items()}
        self._shells: dict[str, WebFile] = {}

    def find(self, path: str, root: str = "") -> WebFile | None:
        """What stands at a path of ours, quoted as it came; `root`: what stands before it where we are mounted."""
        if path.startswith(STATIC):
            digest, _, name = path.removeprefix(STATIC).partition("/")
            found = self._files.get(unquote(name)) if name != _SHELL else None
            # Another release's page, served by that one: better ours than none, but nothing to keep.
            return found if found is None or digest == self.digest else WebFile(found.body, found.media_type)
        return self.shell(root) if is_screen(path) else None

    def shell(self, root: str) -> WebFile:
        if root not in self._shells:
            if len(self._shells) > 10:  # nobody mounts it so often
                self._shells.clear()
            self._shells[root] = WebFile(self._filled(root), _TYPES[".html"])
        return self._shells[root]

    def _filled(self, root: str) -> bytes:
        folder = f"static/{self.digest}"
        modules = sorted(name for name in self._files if name.endswith(".js") and name != "theme.js")
        preloads = "\n".join(f'<link rel="modulepreload" href="{folder}/{name}">' for name in modules)
        text = self._bodies[_SHELL].decode()
        for word, value in {"BASE": escape(f"{root}/"), "STATIC": folder, "PRELOADS": preloads}.items():
            text = text.replace(f"%{word}%", value)
        return text.encode()


def is_screen(path: str) -> bool:
    """`/`, `/jobs`, `/jobs/ID`: nothing longer, which other paths of the API are."""
    words = path.strip("/").split("/") if path != "/" else []
    return not words or (len(words) <= 2 and words[0] in SCREENS and "" not in words)


def _walk(folder: Traversable, before: str = "") -> Iterator[tuple[str, bytes]]:
    for each in folder.iterdir():
        if each.is_dir():
            yield from _walk(each, f"{before}{each.name}/")
        else:
            yield before + each.name, each.read_bytes()


def _type_of(name: str) -> str:
    return next((kind for suffix, kind in _TYPES.items() if name.endswith(suffix)), _PLAIN)
