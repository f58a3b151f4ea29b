"""unstuck signing: keys are made and listed, submits signed and verified; no secret is shown unasked."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.command import Command
from tests.support.signing import SECRET, a_key, toml
from unstuck.signing import read_keys

SUBMIT = {"workflow": "charge", "queue": "money", "args": [1], "policy": {"timeout": 60}}


def test_a_new_key_is_printed_as_its_file_has_it(bare: Command) -> None:
    made = bare("signing", "new-key", "a", "--tenant", "acme", "--purpose", "submit", "--purpose", "spawn")
    [key] = read_keys(made.out)
    assert (key.id, key.algorithm, key.tenant, key.purposes) == ("a", "hmac-sha256", "acme", ("submit", "spawn"))
    assert key.secret is not None
    assert len(key.secret) == 32
    assert bare("signing", "new-key", "a").out != bare("signing", "new-key", "a").out


def test_of_an_ed25519_key_both_halves_are_printed_apart(bare: Command) -> None:
    made = bare(
        "signing", "new-key", "b", "--algorithm", "ed25519", "--end", "2030-01-01T00:00:00Z", "--overlap", "1h"
    )
    signs, verifies = (read_keys(f"[[key]]{part}")[0] for part in made.out.split("[[key]]")[1:])
    assert signs.can_sign
    assert verifies.secret is None
    assert verifies.public == signs.public_half()
    assert signs.overlap == 3600.0


def test_keys_are_listed_without_their_secrets(bare: Command, tmp_path: Path) -> None:
    keys = toml(a_key(), a_key("k2", "ed25519").for_verifying())
    secret = keys.partition('secret = "')[2].partition('"')[0]
    (tmp_path / "keys.toml").write_text(keys)
    listed = bare("signing", "keys", "--keys", "keys.toml", UNSTUCK_REQUIRE_SIGNATURE="queue:money")
    assert listed.code == 0, listed.err
    assert "web" in listed.out
    assert "public half" in listed.out
    assert "queue:money" in listed.err
    found = bare("signing", "keys", "--json", UNSTUCK_SIGNING_KEYS=keys).object["keys"]
    assert [(key["id"], key["state"], key["holds"]) for key in found] == [
        ("web", "signs", "secret"),
        ("k2", "verifies", "public half"),
    ]
    shown = bare("config", "show", UNSTUCK_SIGNING_KEYS=keys)
    assert "(the keys themselves)" in shown.out
    for answer in (listed, shown, bare("config", "show", "--json", UNSTUCK_SIGNING_KEYS=keys)):
        assert secret not in answer.out + answer.err


def test_a_submit_is_signed_and_verified(bare: Command, tmp_path: Path) -> None:
    (tmp_path / "submit.json").write_text(json.dumps(SUBMIT))
    keys = toml(a_key(tenant="acme"))
    signed = bare("signing", "sign", "submit.json", "--tenant", "acme", UNSTUCK_SIGNING_KEYS=keys)
    body = signed.object
    assert "args" not in body
    (tmp_path / "signed.json").write_text(signed.out)
    held = bare("signing", "verify", "signed.json", "--tenant", "acme", UNSTUCK_SIGNING_KEYS=keys)
    assert (held.code, held.out.strip()) == (0, f"it holds: job {body['id']} of tenant acme, by key web")
    other = bare("signing", "verify", "signed.json", "--tenant", "bank", UNSTUCK_SIGNING_KEYS=keys)
    assert other.code == 1
    assert "refused (altered)" in other.out


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"queue": None}, "does not say queue"),
        ({"policy": None}, "does not say policy"),
        ({"delay": 5}, "a delay is not signed"),
        ({"id": "x"}, "is not a UUID"),
        ({"priority": "high"}, "is not a whole number"),
        ({"at": "soon"}, "is not a time"),
        ({"workflow": 7}, "a submit is an object"),
    ],
)
def test_what_cannot_be_signed_is_refused_in_words(
    change: dict[str, object], words: str, bare: Command, tmp_path: Path
) -> None:
    (tmp_path / "submit.json").write_text(json.dumps(SUBMIT | change))
    refused = bare("signing", "sign", "submit.json", UNSTUCK_SIGNING_KEYS=toml(a_key()))
    assert refused.code == 2
    assert words in refused.err


def test_without_a_key_for_it_nothing_is_signed(bare: Command, tmp_path: Path) -> None:
    (tmp_path / "submit.json").write_text(json.dumps(SUBMIT))
    for keys in (None, toml(a_key(tenant="other")), toml(a_key(algorithm="ed25519").for_verifying())):
        refused = bare("signing", "sign", "submit.json", UNSTUCK_SIGNING_KEYS=keys)
        assert refused.code == 2
        assert "no signing key signs submits of tenant default now" in refused.err


@pytest.mark.parametrize("words", [("server", "--port", "0"), ("worker", "tests.cli.shop:app")])
def test_what_requires_signatures_and_has_no_key_does_not_start(words: tuple[str, ...], bare: Command) -> None:
    """A44."""
    database = f"sqlite:///{bare.directory / 'new.db'}"
    refused = bare(*words, UNSTUCK_REQUIRE_SIGNATURE="tenant:acme", UNSTUCK_DATABASE=database)
    assert refused.code == 2
    assert "a signature is required (tenant:acme), and there is no signing key" in refused.err
    assert not (bare.directory / "new.db").exists()
    assert SECRET.hex() not in refused.err


def test_the_command_line_signs_what_it_enqueues(unstuck: Command) -> None:
    keys = toml(a_key())
    made = unstuck("enqueue", "add", "1", "2", "--app", "tests.cli.shop:app", UNSTUCK_SIGNING_KEYS=keys)
    assert made.code == 0, made.err
    assert "signed     by key web" in unstuck("jobs", "show", made.word).out
    assert unstuck("jobs", "show", made.word, "--json").object["signed_by"] == "web"
    rule = {"UNSTUCK_REQUIRE_SIGNATURE": "*", "UNSTUCK_SIGNING_KEYS": toml(a_key(tenant="other"))}
    refused = unstuck("enqueue", "add", "1", "2", "--app", "tests.cli.shop:app", **rule)
    assert refused.code == 2
    assert "a signature is required, and there is none" in refused.err


def test_the_process_that_asks_an_app_for_its_settings_has_no_keys(bare: Command, tmp_path: Path) -> None:
    """It imports user code."""
    (tmp_path / "mine.py").write_text(
        "import os, unstuck\nopen('seen', 'w').write('\\n'.join(os.environ))\napp = unstuck.App('sqlite:///x.db')\n"
    )
    checked = bare("worker", "mine:app", "--check", UNSTUCK_SIGNING_KEYS=toml(a_key()))
    assert checked.code == 0, checked.err
    seen = (tmp_path / "seen").read_text().splitlines()
    assert "PATH" in seen
    assert "UNSTUCK_SIGNING_KEYS" not in seen
