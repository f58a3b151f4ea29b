"""The dashboard over HTTP. It holds nothing that is anybody's: who looks at it is asked by the API behind it."""

from __future__ import annotations

from unstuck.server.exchange import Exchange, HttpAnswer
from unstuck.web.files import WebFiles

#: Only what we serve ourselves is loaded, run or asked; nothing that stands inside the page's text, and no text is
#: ever made markup (trusted types). No other page shows it in a frame.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; base-uri 'self'; "
    "form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
)
FOR_GOOD = "public, max-age=31536000, immutable"


class WebPage:
    def __init__(self, files: WebFiles | None = None) -> None:
        self._files = WebFiles() if files is None else files

    def answer(self, exchange: Exchange) -> HttpAnswer | None:
        """None: nothing of the page stands at this path."""
        found = self._files.find(exchange.own_path, exchange.root)
        if found is None:
            return None
        packed = found.gzipped if _takes_gzip(exchange) else None
        headers = {
            "ETag": found.tag if packed is None else f'{found.tag[:-1]}-gzip"',
            "Cache-Control": FOR_GOOD if found.for_good else "no-cache",
            "Content-Security-Policy": POLICY,
            "Vary": "Accept-Encoding",
        }
        known = [text.strip().removeprefix("W/") for text in exchange.headers.get("if-none-match", "").split(",")]
        if headers["ETag"] in known:
            return HttpAnswer(304, b"", found.media_type, headers)
        if packed is not None:
            return HttpAnswer(200, packed, found.media_type, {**headers, "Content-Encoding": "gzip"})
        return HttpAnswer(200, found.body, found.media_type, headers)


def _takes_gzip(exchange: Exchange) -> bool:
    said = [part.strip().lower() for part in exchange.headers.get("accept-encoding", "").split(",")]
    return "gzip" in (part.partition(";")[0] for part in said if not part.replace(" ", "").endswith(";q=0"))
