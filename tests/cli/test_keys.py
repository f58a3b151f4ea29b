"""unstuck keys: made, shown once, listed, rotated and revoked, for people and for programs."""

from __future__ import annotations

from tests.cli.command import Command
from unstuck.model.keys import id_in


def test_a_key_is_made_listed_shown_rotated_and_revoked(unstuck: Command) -> None:
    asked = ("--role", "operator", "--tenant", "acme", "--queue", "io", "--queue", "cpu", "--workflow", "mail")
    made = unstuck("keys", "create", "ci", *asked, "--scope", "act-as", "--expires", "90d", "--by", "ada", "--json")
    assert made.code == 0
    first = made.object
    assert id_in(first["key"]) == first["id"]
    assert (first["tenant"], first["role"], first["queues"], first["workflows"], first["scopes"]) == (
        "acme", "operator", ["cpu", "io"], ["mail"], ["act-as"],
    )  # fmt: skip
    assert (first["created_by"], first["state"]) == ("ada", "active")

    [listed] = unstuck("keys", "--json").lines
    assert {**listed, "key": first["key"]} == first
    table = unstuck("keys", "list")
    assert first["id"] in table.out
    assert "operator (limited)" in table.out

    new = unstuck("keys", "rotate", first["id"], "--overlap", "5m", "--json").object
    assert (new["rotated_from"], new["queues"]) == (first["id"], ["cpu", "io"])
    shown = unstuck("keys", "show", first["id"])
    assert f"rotated   {new['id']} took its place" in shown.out
    assert "tenant    acme" in shown.out

    revoked = unstuck("keys", "revoke", new["id"], "--by", "eve")
    assert f"key {new['id']} of ci is revoked" in revoked.out
    assert "by eve" in revoked.out
    assert [line["id"] for line in unstuck("keys", "list", "--json").lines] == [first["id"]]
    assert [line["state"] for line in unstuck("keys", "list", "--all", "--json").lines] == ["revoked", "active"]
    verbs = [line["verb"] for line in unstuck("audit", "--verb", "keys", "--json").lines]
    assert verbs == ["keys.revoke", "keys.rotate", "keys.create"]
    said = " ".join(answer.out + answer.err for answer in (table, shown, revoked, unstuck("audit", "--json")))
    assert not any(made["key"][13:] in said for made in (first, new))


def test_people_see_the_key_alone_on_stdout(unstuck: Command) -> None:
    made = unstuck("keys", "create", "ci", "--role", "reader")
    ident = id_in(made.word)
    assert ident is not None
    assert "shown this once" in made.err
    assert made.word not in made.err
    assert "tenant    all (the platform)" in unstuck("keys", "show", ident).out


def test_what_is_wrong_is_refused_with_a_remedy(unstuck: Command) -> None:
    for words, code, said in (
        (("create", "ci", "--role", "god"), 2, "known: reader, submitter"),
        (("create", "ci"), 2, "--role"),
        (("create", "ci", "--role", "reader", "--expires", "soon"), 2, "soon"),
        (("create", "ci", "--role", "platform-admin", "--tenant", "acme"), 2, "leave the tenant out"),
        (("create", "ci", "--role", "reader", "--scope", "root"), 2, "act-as"),
        (("show", "zzzzzzzz"), 3, "unstuck keys list"),
        (("revoke", "nonsense!"), 3, "unstuck keys list"),
    ):
        answer = unstuck("keys", *words)
        assert (answer.code, said in answer.err) == (code, True), answer
    root = ("keys", "create", "root", "--role", "platform-admin")
    assert unstuck(*root, UNSTUCK_TENANT="acme").code == 2
    assert unstuck(*root, "--all-tenants", UNSTUCK_TENANT="acme").code == 0
    ended = unstuck("keys", "create", "ci", "--role", "reader", "--json").object["id"]
    unstuck("keys", "revoke", ended)
    refused = unstuck("keys", "rotate", ended)
    assert (refused.code, "is revoked and cannot be rotated" in refused.err) == (4, True)
