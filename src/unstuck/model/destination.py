"""Destination: where a webhook may go. Pure: which URLs are accepted, and which addresses may be dialled.

Whoever registers a URL chooses what this process connects to, from inside a network that the chooser may not be in.
So only public addresses are dialled, whatever they are spelled like, unless the allow-list names the host or the
address. The names of hosts are resolved elsewhere (`deliver/dialler.py`); every address that comes back is judged
here, by its bits and not by its text. `ipaddress.is_global` is not asked: what it says differs between versions of
Python, and it takes an IPv4 address inside an IPv6 one for a public address.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address, ip_network
from typing import Any, Final
from urllib.parse import urlsplit

from unstuck.model.errors import AddressRefused, InvalidInput, quoted
from unstuck.records import dataclass

Address = IPv4Address | IPv6Address
Network = IPv4Network | IPv6Network

LONGEST_URL: Final = 2048
#: Where a public host may be reached: not whatever else listens there.
PORTS: Final = frozenset({443, 8443})
MOST_ALLOWED: Final = 100

_LABEL = r"[a-z0-9_](?:[a-z0-9_-]{0,61}[a-z0-9_])?"
_NAME = re.compile(rf"{_LABEL}(?:\.{_LABEL})*", re.ASCII)
#: What any resolver takes for a number, and so for an IPv4 address: the last part decides, as in a browser.
_NUMBER = re.compile(r"[0-9]+|0x[0-9a-f]*", re.ASCII)
#: Printable ASCII without what the parsers of URLs disagree about.
_PLAIN_URL = re.compile(r"[!#-;=?-\[\]_a-z~%&A-Z]+", re.ASCII)

#: Of IPv4 what is nobody's public host, and why.
_NOT_PUBLIC_4: Final = tuple(
    (IPv4Network(network), why)
    for network, why in (
        ("0.0.0.0/8", "unspecified"),
        ("10.0.0.0/8", "private"),
        ("100.64.0.0/10", "shared with a carrier"),
        ("127.0.0.0/8", "loopback"),
        ("168.63.129.16/32", "a cloud's metadata"),
        ("169.254.0.0/16", "link-local"),
        ("172.16.0.0/12", "private"),
        ("192.0.0.0/24", "reserved"),
        ("192.0.2.0/24", "for documentation"),
        ("192.31.196.0/24", "reserved"),
        ("192.52.193.0/24", "reserved"),
        ("192.88.99.0/24", "a relay"),
        ("192.168.0.0/16", "private"),
        ("192.175.48.0/24", "reserved"),
        ("198.18.0.0/15", "for benchmarks"),
        ("198.51.100.0/24", "for documentation"),
        ("203.0.113.0/24", "for documentation"),
        ("224.0.0.0/4", "multicast"),
        ("240.0.0.0/4", "reserved"),
    )
)
#: Of IPv6 only this is given to hosts, but for what follows.
_GLOBAL_6: Final = IPv6Network("2000::/3")
_NOT_PUBLIC_6: Final = tuple(
    (IPv6Network(network), why)
    for network, why in (
        ("::1/128", "loopback"),
        ("::/128", "unspecified"),
        ("2001::/32", "a tunnel"),  # Teredo: whoever is behind it
        ("2001::/23", "reserved"),
        ("2001:db8::/32", "for documentation"),
        ("3fff::/20", "for documentation"),
        ("fc00::/7", "private"),
        ("fe80::/10", "link-local"),
        ("fec0::/10", "private"),
        ("ff00::/8", "multicast"),
    )
)
#: Where an IPv4 address stands in an IPv6 one: the network, and how many bits stand behind it.
_INSIDE: Final = tuple(
    (IPv6Network(network), behind)
    for network, behind in (
        ("::ffff:0:0/96", 0),  # mapped
        ("::ffff:0:0:0/96", 0),  # translated
        ("::/96", 0),  # compatible
        ("64:ff9b::/96", 0),  # NAT64
        ("2002::/16", 80),  # 6to4
    )
)
#: ISATAP: an IPv4 address behind one of these, whatever stands before them.
_ISATAP: Final = (0x00005EFE, 0x02005EFE)


@dataclass(frozen=True, slots=True)
class Destination:
    """A URL that can be asked, taken apart. `host` is in lower case, an IPv6 address without its brackets."""

    url: str
    is_secure: bool
    host: str
    port: int
    #: What follows the host, as it is sent.
    path: str

    @property
    def authority(self) -> str:
        """What the header Host says."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == (443 if self.is_secure else 80) else f"{host}:{self.port}"

    @property
    def literal(self) -> Address | None:
        """The address, where no name was given."""
        try:
            return ip_address(self.host)
        except ValueError:
            return None


def destination(url: Any) -> Destination:
    """A URL, taken apart; InvalidInput for one that two readers could understand differently."""
    if not isinstance(url, str) or not url:
        raise InvalidInput(f"url={quoted(url)} is not a URL")
    if len(url) > LONGEST_URL or _PLAIN_URL.fullmatch(url) is None:
        raise InvalidInput(
            f"url={quoted(url)} is longer than {LONGEST_URL:,} characters, or has characters that must be escaped; a "
            "host with others than ASCII is written as xn--…"
        )
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        raise InvalidInput(f"url={quoted(url)} is not a URL") from None
    is_secure = parts.scheme == "https"
    if parts.scheme not in ("https", "http") or not parts.netloc:
        raise InvalidInput(f"url={quoted(url)} does not begin with https:// and a host")
    if "@" in parts.netloc or "#" in url:
        raise InvalidInput("a webhook's URL has neither a name and password nor a fragment (#)")
    usual = 443 if is_secure else 80
    path = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    return Destination(url, is_secure, _host(parts.hostname or "", url), usual if port is None else port, path)


def _host(host: str, url: str) -> str:
    if ":" in host:
        if "%" in host:
            raise InvalidInput(f"url={quoted(url)}: the zone of an address (%) means something on one machine alone")
        try:
            return str(IPv6Address(host))
        except ValueError:
            raise InvalidInput(f"url={quoted(url)}: {quoted(host)} is no IPv6 address") from None
    if _NUMBER.fullmatch(host.rpartition(".")[2] or "0"):
        try:
            return str(IPv4Address(host))
        except ValueError:
            raise InvalidInput(
                f"url={quoted(url)}: {quoted(host)} is no host; an IPv4 address is written as four decimal numbers"
            ) from None
    if len(host) > 253 or _NAME.fullmatch(host) is None:
        raise InvalidInput(f"url={quoted(url)}: {quoted(host)} is not the name of a host")
    return host


def meant(address: Address) -> Address:
    """The IPv4 address that stands in an IPv6 one, by whatever way; else the address itself."""
    if isinstance(address, IPv4Address):
        return address
    if address not in (IPv6Address("::"), IPv6Address("::1")):
        for network, behind in _INSIDE:
            if address in network:
                return IPv4Address((int(address) >> behind) & 0xFFFFFFFF)
        if (int(address) >> 32) & 0xFFFFFFFF in _ISATAP:
            return IPv4Address(int(address) & 0xFFFFFFFF)
    return address


def problem_of(address: Address) -> str | None:
    """Why it must not be dialled; None: it is a public host's. A zone makes it local, whatever it is."""
    if isinstance(address, IPv6Address) and address.scope_id is not None:
        return "link-local"
    found = meant(address)
    if isinstance(found, IPv4Address):
        return next((why for network, why in _NOT_PUBLIC_4 if found in network), None)
    known = next((why for network, why in _NOT_PUBLIC_6 if found in network), None)
    return known or (None if found in _GLOBAL_6 else "reserved")


class AllowList:
    """Hosts, addresses and networks that may be dialled although they are not public; by any port, without TLS."""

    def __init__(self, entries: Iterable[str] = ()) -> None:
        self.names: set[str] = set()
        self.networks: list[Network] = []
        for entry in entries:
            kind = _allowed(entry)
            if isinstance(kind, str):
                self.names.add(kind)
            else:
                self.networks.append(kind)

    def admits(self, host: str, address: Address) -> bool:
        if host in self.names:
            return True
        found = meant(address)
        return any(found in network for network in self.networks if network.version == found.version)


def _allowed(entry: str) -> str | Network:
    text = entry.strip().lower()
    try:
        return ip_network(text)
    except ValueError:
        pass
    if _NAME.fullmatch(text) is None or _NUMBER.fullmatch(text.rpartition(".")[2]):
        raise ValueError(f"{quoted(entry)} is neither a host nor an address nor a network like 10.0.0.0/8")
    return text


def check_allow_list(value: Any) -> list[str]:
    """A list of texts, or one text with commas; ValueError says what it is not."""
    given = value.split(",") if isinstance(value, str) else value
    if not isinstance(given, list | tuple) or not all(isinstance(each, str) for each in given):
        raise ValueError("is not a list of hosts, addresses and networks")
    entries = [each.strip().lower() for each in given if each.strip() and each.strip().lower() != "none"]
    if len(entries) > MOST_ALLOWED:
        raise ValueError(f"has more than {MOST_ALLOWED} entries")
    AllowList(entries)
    return entries


def check_addresses(where: Destination, found: Iterable[Address], allow: AllowList) -> tuple[Address, ...]:
    """Those that may be dialled: all that were found, or AddressRefused. One bad address refuses them all: whoever
    answers with a good and a bad one wants the bad one to be tried. None of them is told: who chose the name need not
    learn what it means inside."""
    addresses = tuple(dict.fromkeys(found))
    if not addresses:
        raise AddressRefused(where.host, "it has no address")
    allowed = all(allow.admits(where.host, address) for address in addresses)
    if allowed:
        return addresses
    for address in addresses:
        problem = problem_of(address)
        if problem is not None and not allow.admits(where.host, address):
            raise AddressRefused(where.host, f"it is not a public address ({problem})")
    if not where.is_secure:
        raise AddressRefused(where.host, "without TLS (https) only what the setting webhook_allow names is asked")
    if where.port not in PORTS:
        ports = " and ".join(str(port) for port in sorted(PORTS))
        raise AddressRefused(where.host, f"port {where.port} is not one of {ports}")
    return addresses
