"""This machine itself: whether a request can only come from here, and from no page of another site."""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from unstuck.server.exchange import Exchange
from unstuck.server.problems import HttpProblem

_FORWARDED = (
    "forwarded", "x-forwarded-for", "x-forwarded-host", "x-forwarded-proto", "x-forwarded-port", "x-real-ip",
    "via",
)  # fmt: skip


def check_local(exchange: Exchange) -> None:
    """Whether it can only come from this machine, and from no page of another site."""
    if exchange.address is not None and not is_loopback(exchange.address):
        raise HttpProblem("Forbidden", "without keys only this machine itself may ask")
    host = exchange.headers.get("host", "")
    if not is_loopback(_name_in(host)):
        raise HttpProblem("Forbidden", "without keys the Host must be this machine: localhost, 127.0.0.1 or [::1]")
    for name in _FORWARDED:
        if name in exchange.headers:
            raise HttpProblem("Forbidden", f"without keys nothing is taken from a proxy ({name}): make a key")
    origin = exchange.headers.get("origin")
    if origin is not None and origin != f"{exchange.scheme}://{host}":
        raise HttpProblem("Forbidden", "it comes from a page of another site")
    if exchange.headers.get("sec-fetch-site", "none") not in ("none", "same-origin"):
        raise HttpProblem("Forbidden", "it comes from a page of another site")


def is_from_here(exchange: Exchange) -> bool:
    """Asked of this machine by this machine, as far as can be known: no proxy says that it is between."""
    return (
        exchange.address is not None
        and is_loopback(exchange.address)
        and is_loopback(_name_in(exchange.headers.get("host", "")))
        and not any(name in exchange.headers for name in _FORWARDED)
    )


def _name_in(host: str) -> str:
    if not host.isprintable():
        return ""  # `urlsplit` leaves tabs out
    try:
        split = urlsplit(f"//{host}")
        _ = split.port
    except ValueError:
        return ""
    return "" if split.path or split.query or split.fragment or "@" in host else split.hostname or ""


def is_loopback(name: str) -> bool:
    if name == "localhost":
        return True
    try:
        address = ip_address(name)
    except ValueError:
        return False
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)
