"""How secrets that must be read again are kept: sealed where there is a key, honest where there is none."""

from __future__ import annotations

import base64
import sys
from pathlib import Path

import pytest

from unstuck.model.errors import InvalidSettings, SecretNotOpened
from unstuck.sealing import NO_SEALER, Sealer, is_clear

OLD = "old:" + base64.b64encode(b"o" * 32).decode()
NEW = "new:" + base64.b64encode(b"n" * 32).decode()
SECRET = b"whsec of somebody"


def test_a_sealed_secret_opens_at_its_place_alone_and_shows_nothing() -> None:
    sealer = Sealer.of(NEW)
    stored = sealer.seal(SECRET, "hook/1")

    assert sealer.open(stored, "hook/1") == SECRET
    assert not is_clear(stored)
    assert base64.b64encode(SECRET).decode() not in stored
    assert "whsec" not in stored
    assert sealer.seal(SECRET, "hook/1") != stored, "the same secret must not show that it is the same"
    with pytest.raises(SecretNotOpened, match="changed"):
        sealer.open(stored, "hook/2")


@pytest.mark.parametrize("cut", [slice(0, -4), slice(0, 20), slice(0, 9), slice(0, 0), slice(3, None)])
def test_a_changed_row_is_not_opened(cut: slice) -> None:
    sealer = Sealer.of(NEW)
    with pytest.raises(SecretNotOpened):
        sealer.open(sealer.seal(SECRET, "here")[cut], "here")


def test_the_first_key_seals_and_all_of_them_open(tmp_path: Path) -> None:
    before = Sealer.of(OLD).seal(SECRET, "here")
    file = tmp_path / "sealing.keys"
    file.write_text(f"# the newest first\n{NEW}\n{OLD}  # until everything is rotated\n")
    both = Sealer.of(str(file))

    assert both.open(before, "here") == SECRET
    assert both.seal(SECRET, "here").startswith("sealed:1:new:")
    with pytest.raises(SecretNotOpened, match="key old, which this process lacks"):
        Sealer.of(NEW).open(before, "here")
    with pytest.raises(SecretNotOpened, match="lacks"):
        NO_SEALER.open(before, "here")


def test_without_a_key_it_is_stored_in_clear_text_and_says_so() -> None:
    stored = NO_SEALER.seal(SECRET, "here")

    assert is_clear(stored)
    assert not NO_SEALER
    assert Sealer.of(f"{NEW},{OLD}").open(stored, "here") == SECRET, "what was there before the key stays usable"


@pytest.mark.parametrize(
    "source", ["nowhere.keys", "k:AAAA", f"{NEW},{NEW}", f"{NEW},other:AAAA", "new:" + "A" * 42 + "*="]
)
def test_what_is_no_key_is_refused_without_repeating_it(source: str) -> None:
    with pytest.raises(InvalidSettings) as refused:
        Sealer.of(source)
    assert "bm5u" not in str(refused.value)


def test_a_missing_library_never_means_clear_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cryptography.hazmat.primitives.ciphers.aead", None)
    with pytest.raises(InvalidSettings, match=r"unstuck\[sealing\]"):
        Sealer.of(NEW)
