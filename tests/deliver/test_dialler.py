"""The dialler: nobody is asked but whom it has checked, and nobody keeps it for longer than it gives."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from ipaddress import ip_address

import pytest
import trustme

from tests.support.receiver import ALLOWED, behaving, receiving
from unstuck.deliver import dialler as room
from unstuck.deliver.dialler import CUT, NO_HTTP, NO_TLS, NOT_IN_TIME, NOT_REACHED, WebhookDialler
from unstuck.deliver.resolver import NoAddress, SystemResolver
from unstuck.model.destination import Address
from unstuck.model.errors import AddressRefused, InvalidInput
from unstuck.model.webhooks import TryOutcome

LOOPBACK = ip_address("127.0.0.1")


class Names:
    """What DNS answers: the first time this, then that."""

    def __init__(self, *answers: Sequence[str]) -> None:
        self.answers = list(answers)
        self.asked: list[str] = []

    def addresses(self, host: str, port: int, within: float) -> Sequence[Address]:
        self.asked.append(host)
        return [ip_address(text) for text in self.answers[min(len(self.asked), len(self.answers)) - 1]]


class Line:
    """Who was dialled; it connects everybody to the receiver here instead, if there is one."""

    def __init__(self, port: int | None = None) -> None:
        self.port = port
        self.dialled: list[Address] = []

    def __call__(self, address: Address, port: int, within: float) -> socket.socket:
        self.dialled.append(address)
        if self.port is None:
            raise ConnectionRefusedError
        return room.connect(LOOPBACK, self.port, within)


def post(dialler: WebhookDialler, url: str, within: float = 10.0, allow: Sequence[str] = ()) -> TryOutcome:
    return dialler.post(url, {"webhook-id": "msg_1"}, b"{}", allow=allow, within=within)


def test_nothing_but_the_checked_address_is_dialled_although_dns_answers_otherwise_the_second_time() -> None:
    """Rebinding: the name is resolved once for each try, and what was checked is what is dialled."""
    names, line = Names(["93.184.216.34"], ["127.0.0.1"], ["169.254.169.254"]), Line()
    dialler = WebhookDialler(names, connect=line)

    first, second, third = (post(dialler, "https://rebind.example/") for _ in range(3))

    assert [str(address) for address in line.dialled] == ["93.184.216.34"]
    assert names.asked == ["rebind.example"] * 3
    assert first.error == NOT_REACHED
    assert "not a public address" in (second.error or "")
    assert "not a public address" in (third.error or "")
    assert "127.0.0.1" not in str(second)
    assert "169.254" not in str(third)


def test_one_bad_address_among_good_ones_is_enough_to_dial_nobody() -> None:
    line = Line()
    dialler = WebhookDialler(Names(["93.184.216.34", "::ffff:10.0.0.1"]), connect=line)
    assert post(dialler, "https://mixed.example/").status is None
    assert line.dialled == []
    with pytest.raises(AddressRefused):
        dialler.check("https://mixed.example/", (), 5.0)


@pytest.mark.parametrize(
    "url",
    [
        *("https://127.0.0.1/", "https://[::1]/", "https://[::ffff:127.0.0.1]/", "https://[2002:7f00:1::]/"),
        *("http://10.1.1.1/", "https://2130706433/", "https://0x7f.1/", "https://169.254.169.254/latest/meta-data/"),
        "https://localhost/",
    ],
)
def test_an_inner_address_is_refused_when_it_is_registered_and_when_it_is_sent_to(url: str) -> None:
    line = Line()
    dialler = WebhookDialler(SystemResolver(), connect=line)
    with pytest.raises(InvalidInput):
        dialler.check(url, (), 5.0)
    assert post(dialler, url).status is None
    assert line.dialled == []


def test_a_name_that_nobody_has_is_told() -> None:
    class Nobody:
        def addresses(self, host: str, port: int, within: float) -> Sequence[Address]:
            raise NoAddress("its name cannot be resolved")

    dialler = WebhookDialler(Nobody(), connect=Line())
    with pytest.raises(InvalidInput, match=r"host gone\.example cannot be found"):
        dialler.check("https://gone.example/", (), 5.0)
    assert post(dialler, "https://gone.example/").error == "its name cannot be resolved"


def test_a_resolver_that_does_not_answer_keeps_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    forever = threading.Event()
    monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: forever.wait(20) and [])
    began = time.monotonic()
    found = post(WebhookDialler(SystemResolver(), connect=Line()), "https://slow.example/", within=0.2)
    forever.set()
    assert found.error == "its name was not resolved in time"
    assert time.monotonic() - began < 5


def test_what_is_sent_names_the_host_and_no_proxy_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    with receiving() as receiver:
        port = int(receiver.url.rsplit(":", 1)[1].split("/")[0])
        dialler = WebhookDialler(Names(["127.0.0.1"]))
        found = post(dialler, f"http://hooks.example:{port}/in?a=b", allow=ALLOWED)
    assert (found.status, found.error, found.excerpt) == (200, None, "ok")
    assert found.took_ms is not None
    [message] = receiver.messages
    assert (message.path, message.headers["host"], message.body) == ("/in?a=b", f"hooks.example:{port}", b"{}")
    assert message.headers["content-type"] == "application/json"


def test_a_redirect_is_a_failure_and_not_followed() -> None:
    with receiving(lambda message: 302) as receiver:
        found = post(WebhookDialler(), receiver.url, allow=ALLOWED)
    assert (found.status, found.is_taken) == (302, False)
    assert "redirects are not followed" in (found.error or "")
    assert [message.path for message in receiver.messages] == ["/hook"]


def _reads(met: socket.socket) -> None:
    met.recv(65536)


def _drips(met: socket.socket) -> None:
    _reads(met)
    for byte in b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n" + b"X: y\r\n" * 1000:
        met.sendall(bytes([byte]))
        time.sleep(0.02)


def _silent(met: socket.socket) -> None:
    while met.recv(65536):
        pass


def _endless_headers(met: socket.socket) -> None:
    _reads(met)
    while True:
        met.sendall(b"HTTP/1.1 100 Continue\r\n\r\n" * 1000)


def _cuts(met: socket.socket) -> None:
    _reads(met)
    met.sendall(b"HTTP/1.1 2")


def _rubbish(met: socket.socket) -> None:
    _reads(met)
    met.sendall(b"SSH-2.0-OpenSSH_9.7\r\n" * 10)


def _endless_body(met: socket.socket) -> None:
    _reads(met)
    met.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    while True:
        met.sendall(b"1000\r\n" + b"x" * 4096 + b"\r\n")


def _slow_body(met: socket.socket) -> None:
    _reads(met)
    met.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nhello")
    _silent(met)


def _cut_body(met: socket.socket) -> None:
    _reads(met)
    met.sendall(b"HTTP/1.1 503 Busy\r\nContent-Length: 1000\r\n\r\nhello")


@pytest.mark.parametrize(
    ("behave", "status", "error"),
    [
        (_drips, None, NOT_IN_TIME),
        (_silent, None, NOT_IN_TIME),
        (_endless_headers, None, NO_HTTP),
        (_cuts, None, NO_HTTP),
        (_rubbish, None, NO_HTTP),
        (lambda met: None, None, CUT),
        (_endless_body, 200, None),
        (_slow_body, 200, None),
        (_cut_body, 503, "it answered 503"),
    ],
)
def test_whatever_a_receiver_does_a_try_is_over_in_its_time(
    monkeypatch: pytest.MonkeyPatch, behave: Callable[[socket.socket], None], status: int | None, error: str | None
) -> None:
    """F73. What follows a status changes nothing: it was said."""
    monkeypatch.setattr(room, "BODY_WITHIN", 0.3)
    with behaving(behave) as url:
        began = time.monotonic()
        # Who is to be told of something else than the time has plenty of it.
        found = post(WebhookDialler(), url, within=1.0 if error == NOT_IN_TIME else 3.0, allow=ALLOWED)
        took = time.monotonic() - began
    assert took < 4
    assert (found.status, found.error) == (status, error) or (error == CUT and found.error in (CUT, NO_HTTP))
    assert len(found.excerpt) <= 1024


def test_no_more_is_read_than_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    sent = 0

    def flood(met: socket.socket) -> None:
        nonlocal sent
        _reads(met)
        met.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        while True:
            sent += met.send(b"x" * 65536)

    with behaving(flood) as url:
        assert post(WebhookDialler(), url, within=5.0, allow=ALLOWED).excerpt == "x" * 1024
    assert sent < 16 << 20  # what the kernels' buffers took


def test_closed_and_silent_ports_look_alike() -> None:
    """Who chooses a URL does not learn what listens behind it: the same words, and no time."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    closed = post(WebhookDialler(), f"http://127.0.0.1:{port}/", allow=ALLOWED)

    def never(address: Address, port: int, within: float) -> socket.socket:
        raise TimeoutError

    silent = post(WebhookDialler(connect=never), "http://127.0.0.1:9/", allow=ALLOWED)
    assert closed == silent == TryOutcome(error=NOT_REACHED)


def test_tls_goes_by_the_name_and_a_wrong_certificate_is_none() -> None:
    authority = trustme.CA()
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    authority.issue_cert("hooks.example").configure_cert(server)
    client = ssl.create_default_context()
    authority.configure_trust(client)
    heard: list[str] = []
    server.sni_callback = lambda _, name, __: heard.append(name)

    def answer(met: socket.socket) -> None:
        with server.wrap_socket(met, server_side=True) as secured:
            secured.recv(65536)
            secured.sendall(b"HTTP/1.1 204 No Content\r\n\r\n")

    with behaving(answer) as url:
        port = int(url.rsplit(":", 1)[1].split("/")[0])
        names = Names(["127.0.0.1"])
        good = post(WebhookDialler(names, context=client), f"https://hooks.example:{port}/", allow=ALLOWED)
        other = post(WebhookDialler(names, context=client), f"https://other.example:{port}/", allow=ALLOWED)
        untrusted = post(WebhookDialler(names), f"https://hooks.example:{port}/", allow=ALLOWED)
    assert good.status == 204
    assert (other.error, untrusted.error) == (NO_TLS, NO_TLS)
    assert heard == ["hooks.example", "other.example", "hooks.example"]


def test_several_addresses_are_tried_and_no_more_than_three() -> None:
    line = Line()
    dialler = WebhookDialler(Names([f"93.184.216.{n}" for n in range(1, 9)]), connect=line)
    assert post(dialler, "https://many.example/").error == NOT_REACHED
    assert len(line.dialled) == 3


def test_what_a_receiver_asks_for_is_told() -> None:
    def busy(met: socket.socket) -> None:
        met.recv(65536)
        met.sendall(b"HTTP/1.1 429 Too Many\r\nRetry-After: 90\r\nContent-Length: 0\r\n\r\n")

    with behaving(busy) as url:
        outcome = post(WebhookDialler(), url, allow=ALLOWED)
    assert (outcome.status, outcome.retry_after) == (429, 90.0)
    assert outcome.took_ms is not None
