"""Where a webhook may go: which URLs are read, and which addresses are dialled, however they are spelled."""

from __future__ import annotations

from ipaddress import ip_address

import pytest

from unstuck.model.destination import AllowList, check_addresses, check_allow_list, destination, meant, problem_of
from unstuck.model.errors import AddressRefused, InvalidInput

NOT_PUBLIC = [
    *("127.0.0.1", "127.255.255.254", "0.0.0.0", "0.1.2.3", "10.0.0.1", "172.16.0.1", "172.31.255.255"),
    *("192.168.1.1", "169.254.169.254", "169.254.170.2", "100.64.0.1", "100.100.100.200", "100.127.255.255"),
    *("168.63.129.16", "192.0.0.1", "192.0.0.192", "192.0.2.1", "192.88.99.1", "198.18.0.1", "198.19.255.255"),
    *("198.51.100.7", "203.0.113.9", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255"),
    # IPv6 itself
    *("::1", "::", "fc00::1", "fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1", "2001:db8::1", "3fff::1"),
    *("100::1", "2001::1", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:10::1", "2001:20::1", "64:ff9b:1::1"),
    *("5f00::1", "4000::1", "fe80::1%eth0", "2a00:1450::1%eth0"),
    # IPv4 inside of it
    *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "::ffff:a9fe:a9fe", "::127.0.0.1", "::10.1.2.3"),
    *("::ffff:0:127.0.0.1", "64:ff9b::127.0.0.1", "64:ff9b::a9fe:a9fe", "2002:7f00:1::", "2002:a00:1::1"),
    *("2a00:1450::5efe:10.0.0.1", "2a00:1450::200:5efe:127.0.0.1"),
]
PUBLIC = [
    *("1.1.1.1", "8.8.8.8", "93.184.216.34", "172.32.0.1", "100.63.255.255", "100.128.0.0", "192.0.1.1"),
    *("2606:4700:4700::1111", "2a00:1450:4001:82a::200e", "64:ff9b::808:808", "::ffff:8.8.8.8", "2002:808:808::1"),
]


@pytest.mark.parametrize("text", NOT_PUBLIC)
def test_nothing_is_dialled_that_is_not_public_however_it_is_spelled(text: str) -> None:
    address = ip_address(text)
    assert problem_of(address)
    with pytest.raises(AddressRefused) as refused:
        check_addresses(destination("https://hooks.example/x"), [ip_address("1.1.1.1"), address], AllowList())
    assert text.partition("%")[0] not in str(refused.value)  # who chose the name need not learn what it means inside


@pytest.mark.parametrize("text", PUBLIC)
def test_a_public_address_is_dialled(text: str) -> None:
    address = ip_address(text)
    assert problem_of(address) is None
    assert check_addresses(destination("https://hooks.example/x"), [address], AllowList()) == (address,)


@pytest.mark.parametrize(
    "url",
    [
        *("https://2130706433/", "https://0x7f000001/", "https://017700000001/", "https://127.1/", "https://0x7f.1/"),
        *(
            "https://0177.0.0.1/",
            "https://127.0.0.1./",
            "https://1.2.3.04/",
            "https://256.1.1.1/",
            "https://1.2.3.4.5/",
        ),
        *("https://[fe80::1%25eth0]/", "https://[::ffff:1.2.3]/", "https://[::1/", "https://１２７.0.0.1/"),
        *(
            "https://ⓔxample.com/",
            "https://a b.example/",
            "https://ex\tample.com/",
            "https://host.example\\@1.1.1.1/",
        ),
        *("https://user:pass@host.example/", "https://@host.example/", "https://host.example/#top", "https:///x"),
        *("ftp://host.example/", "//host.example/", "host.example", "file:///etc/passwd", "gopher://h/", "https://"),
        *(
            "https://host.example:99999/",
            "https://host.example:x/",
            "https://-a.example/",
            "https://a..b/",
            "",
            7,
            None,
        ),
        *(
            "https://host.example/\r\nX-Evil: 1",
            "https://" + "a" * 64 + ".example/",
            "https://h.example/" + "a" * 2048,
        ),
    ],
)
def test_a_url_that_readers_could_understand_differently_is_no_url(url: object) -> None:
    with pytest.raises(InvalidInput):
        destination(url)


def test_a_url_is_taken_apart_as_it_is_sent() -> None:
    found = destination("https://Hooks.Example:8443/a/b?c=d")
    assert (found.host, found.port, found.path, found.authority) == (
        *("hooks.example", 8443, "/a/b?c=d"),
        "hooks.example:8443",
    )
    assert destination("https://[2606:4700::1111]").authority == "[2606:4700::1111]"
    assert destination("https://h.example").path == "/"


@pytest.mark.parametrize(("url", "address"), [("http://h.example/", "1.1.1.1"), ("https://h.example:22/", "1.1.1.1")])
def test_a_public_host_is_asked_by_https_and_by_few_ports_alone(url: str, address: str) -> None:
    with pytest.raises(AddressRefused):
        check_addresses(destination(url), [ip_address(address)], AllowList())


def test_what_the_allow_list_names_is_asked_by_any_port_without_tls() -> None:
    allow = AllowList(["127.0.0.0/8", "intern.example", "fd00::/8"])
    for url, address in (
        ("http://127.0.0.1:8080/", "127.0.0.1"),
        ("http://any.example/", "::ffff:127.0.0.9"),
        ("http://intern.example/", "10.0.0.1"),
        ("http://other.example:81/", "fd00::1"),
    ):
        assert check_addresses(destination(url), [ip_address(address)], allow)
    with pytest.raises(AddressRefused):  # one that is not named is enough
        check_addresses(destination("http://x.example/"), [ip_address("127.0.0.1"), ip_address("10.0.0.1")], allow)
    with pytest.raises(AddressRefused):
        check_addresses(destination("http://h.intern.example/"), [ip_address("10.0.0.1")], allow)


def test_an_allow_list_is_hosts_addresses_and_networks() -> None:
    assert check_allow_list(" 10.0.0.0/8, Hooks.Example ,::1") == ["10.0.0.0/8", "hooks.example", "::1"]
    assert check_allow_list("none") == []
    for wrong in ("10.0.0.1/8", "http://x", "127.1", "a/b", 7, [7], ["x"] * 101):
        with pytest.raises(ValueError):
            check_allow_list(wrong)


def test_what_stands_in_an_address_is_meant() -> None:
    assert str(meant(ip_address("2002:7f00:1::5"))) == "127.0.0.1"
    assert str(meant(ip_address("2606:4700::1"))) == "2606:4700::1"
