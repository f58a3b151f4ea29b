"""Browsers: how one that has logged in is known by its cookie, and kept from asking for pages of other sites.

A browser sends its cookies along with whatever any page makes it send. So a change by cookie must carry a token that
only our own page can have read (X-CSRF-Token), and nothing by cookie may come from elsewhere: the cookie is
SameSite=Strict, and Origin and Sec-Fetch-Site, where a browser sends them, must be ours.

Cookies are given out over https, or on this machine itself. What is https can only be known from the program that
serves us, or be told by `--public-url`: a proxy that ends TLS speaks http to us. Where neither says so, nobody
logs in.
"""

from __future__ import annotations

from collections.abc import Callable
from hmac import compare_digest
from urllib.parse import urlsplit

from unstuck.model.errors import InvalidInput, StoreError, Unauthenticated, quoted
from unstuck.operations.browser_sessions import BrowserSessions, KnownBrowser
from unstuck.records import dataclass
from unstuck.server.exchange import Exchange
from unstuck.server.local import is_from_here
from unstuck.server.problems import HttpProblem

CSRF_HEADER = "X-CSRF-Token"
_NAME = "unstuck-session"


@dataclass(frozen=True, slots=True)
class Place:
    """Where browsers find us: `origin` as they write it, and the path below which our cookie is sent."""

    origin: str
    path: str = "/"

    @property
    def is_secure(self) -> bool:
        return self.origin.startswith("https:")

    @property
    def cookie(self) -> str:
        """Its name. One with these prefixes no other site of our domain can set for us, nor anything over http."""
        if not self.is_secure:
            return _NAME
        return f"__Host-{_NAME}" if self.path == "/" else f"__Secure-{_NAME}"

    def set_cookie(self, secret: str) -> str:
        """It goes with the browser; without a secret, at once."""
        age = "" if secret else "; Max-Age=0"
        return (
            f"{self.cookie}={secret}; Path={self.path}; HttpOnly; SameSite=Strict"
            f"{'; Secure' if self.is_secure else ''}{age}"
        )


def public_origin(url: str | None) -> str | None:
    """As browsers write it in Origin; only https, and only the root of its host."""
    if url is None:
        return None
    try:
        split = urlsplit(url)
        host, port = split.hostname, split.port
    except ValueError:
        host, split, port = None, urlsplit(""), None
    extra = split.path not in ("", "/") or split.query or split.fragment or "@" in split.netloc
    if split.scheme != "https" or not host or extra or not url.isprintable() or not host.isascii():
        raise InvalidInput(f"--public-url {quoted(url)} is not an address like https://jobs.example, without a path")
    name = f"[{host}]" if ":" in host else host
    return f"https://{name}" if port in (None, 443) else f"https://{name}:{port}"


class Browsers:
    """`public`: the origin that browsers see, "https://jobs.example"; None: the one that each request names."""

    def __init__(self, sessions: Callable[[], BrowserSessions], public: str | None = None) -> None:
        self._sessions = sessions
        self._public = public

    def check_log_in(self, exchange: Exchange) -> None:
        """Whether a browser may be given a cookie here. A page of another site must not log its visitors in either:
        they would work under somebody else's name."""
        check_same_origin(exchange, self._place_to_log_in(exchange))

    def log_in(self, exchange: Exchange, key: str, by: str) -> tuple[KnownBrowser, str]:
        """A new session, whatever the browser had before, and the header that sets its cookie."""
        place, sessions = self._place_to_log_in(exchange), self._sessions()
        before = _cookies(exchange, place.cookie)
        begun = sessions.begin(key, by, exchange.address)
        for secret in before:
            self._end_quietly(secret, exchange)
        return begun, place.set_cookie(begun.secret)

    def log_out(self, exchange: Exchange, browser: KnownBrowser) -> str:
        """The header that takes its cookie away."""
        self._sessions().end(browser, browser.identity.name, exchange.address)
        return self._place_to_log_in(exchange).set_cookie("")

    def known(self, exchange: Exchange, *, is_use: bool = True) -> KnownBrowser | None:
        """Whose browser it is; None: it shows no cookie of ours. Unauthenticated, or a refusal of what does not come
        from our own page."""
        place = self._place(exchange)
        shown = [] if place is None else _cookies(exchange, place.cookie)
        if place is None or not shown:
            return None
        if len(shown) > 1:
            raise Unauthenticated("there are two cookies of one name: one of them may be somebody else's")
        check_same_origin(exchange, place)
        found = self._sessions().known(shown[0], is_use=is_use)
        if exchange.method not in ("GET", "HEAD"):
            _check_token(exchange, found)
        return found

    def _end_quietly(self, secret: str, exchange: Exchange) -> None:
        try:
            browser = self._sessions().known(secret, is_use=False)
            self._sessions().end(browser, browser.identity.name, exchange.address)
        except (Unauthenticated, StoreError):
            return

    def _place(self, exchange: Exchange) -> Place | None:
        """None: neither https nor this machine itself, as far as can be known."""
        path = (exchange.root or "/").replace(
            ";", "%3B"
        )  # or a path could say more of the cookie than where it is sent
        if self._public is not None:
            return Place(self._public, path)
        host = exchange.headers.get("host", "")
        if exchange.scheme == "https" or is_from_here(exchange):
            return Place(f"{exchange.scheme}://{host}", path)
        return None

    def _place_to_log_in(self, exchange: Exchange) -> Place:
        place = self._place(exchange)
        if place is None:
            raise HttpProblem(
                "NotSecure", "a browser logs in over https, or on this machine itself (http://localhost)"
            )
        return place


def check_same_origin(exchange: Exchange, place: Place) -> None:
    origin = exchange.headers.get("origin")
    if origin is not None and origin != place.origin:
        raise HttpProblem(
            "CrossSite", f"it comes from a page of another site than {place.origin}; behind a proxy: --public-url"
        )
    if exchange.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        raise HttpProblem("CrossSite", "it comes from a page of another site")


def _check_token(exchange: Exchange, browser: KnownBrowser) -> None:
    shown = exchange.headers.get(CSRF_HEADER.lower(), "")
    if not compare_digest(shown.encode(), browser.csrf.encode()):
        raise HttpProblem(
            "CrossSite", f"a change by cookie needs the header {CSRF_HEADER}, as GET /api/v1/session has it"
        )


def _cookies(exchange: Exchange, name: str) -> list[str]:
    """Every value that was sent under this name."""
    pairs = (pair.partition("=") for line in exchange.all_of("cookie") for pair in line.split(";"))
    return [value.strip() for found, _, value in pairs if found.strip() == name]
