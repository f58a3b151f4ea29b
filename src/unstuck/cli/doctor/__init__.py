"""unstuck doctor: what is wrong with this installation, why that matters, and what helps."""

from __future__ import annotations

from typing import Annotated

from unstuck.cli import exits, options, output
from unstuck.cli.asking import Asker, asked
from unstuck.cli.parser import option
from unstuck.model.errors import InvalidInput, told
from unstuck.operations import doctor as operations
from unstuck.operations.examinations import CHECKS
from unstuck.operations.examinations.running import examine
from unstuck.views.doctor import SEVERITIES, DoctorView, FindingView, FixView

app = options.single()

_STYLES = {"error": "bold red", "unchecked": "bold magenta", "warning": "yellow", "note": "cyan"}


@app.command()
def doctor(
    only: Annotated[
        list[str] | None, option("--only", metavar="CHECK", help="this check; may be repeated. --list names them")
    ] = None,
    fix: Annotated[
        bool, option("--fix", help="mend what is safe to mend while others work, and say what was done")
    ] = False,
    strict: Annotated[bool, option("--strict", help="a warning is an exit code of 10, too")] = False,
    list_: Annotated[bool, option("--list", help="name the checks, and make none")] = False,
    app_name: options.AppName = None,
    by: options.By = None,
    *,
    common: options.CommonAnywhere,
) -> int:
    """What is wrong here, the worst first, each with why it matters and what helps: the database, its settings, the
    workers and their code, this host. Exit code 10 if there is an error, or something could not be checked or fixed;
    6 if the database cannot be reached; else 0."""
    if list_:
        _list(common.json)
        return exits.OK
    with asked(common, by) as asker:
        found = _examined(asker, only or [], fix, app_name)
    if common.json:
        output.emit_view(found)
    else:
        _print(found)
    return _code(found, strict)


def _code(found: DoctorView, strict: bool) -> int:
    if any(finding.check == operations.REACHABLE for finding in found.findings):
        return exits.UNREACHABLE
    is_well = found.ok and not (strict and found.number("warning")) and all(fixed.ok for fixed in found.fixed)
    return exits.OK if is_well else exits.UNHEALTHY


def _examined(asker: Asker, only: list[str], fix: bool, app: str | None) -> DoctorView:
    """What is asked, and what this host says of itself."""
    from unstuck.cli.doctor import local

    ours = {check.name for check in local.CHECKS}
    theirs = [name for name in only if name not in ours]
    for name in theirs:
        if name not in {check.name for check in CHECKS}:
            raise InvalidInput(f"there is no check {told(name)}; unstuck doctor --list names them")
    found = DoctorView.of((), ())
    if theirs or not only:
        found = asker.ask(operations.fix if fix else operations.check, only=theirs)
    here = local.Host(asker, app or asker.settings.app)
    own = [check for check in local.CHECKS if not only or check.name in only]
    findings, examined = examine(here, own, local.WITHIN)
    return DoctorView.of((*found.findings, *findings), (*found.examined, *examined), found.fixed)


def _list(as_json: bool) -> None:
    from unstuck.cli.doctor import local

    rows = [(check.name, check.looks_at, check.fix is not None) for check in CHECKS]
    rows += [(check.name, check.looks_at, False) for check in local.CHECKS]
    if as_json:
        output.emit_each({"name": name, "looks_at": looks_at, "fixes": fixes} for name, looks_at, fixes in rows)
        return
    output.table(
        ["CHECK", "FIX", "SUMMARY"], [(name, "yes" if fixes else "", what) for name, what, fixes in rows], empty=""
    )


def _print(found: DoctorView) -> None:
    for each in found.fixed:
        _print_fix(each)
    for finding in found.findings:
        _print_finding(finding)
    output.say(_summary(found))


def _print_fix(fixed: FixView) -> None:
    mark = output.styled("fixed    ", "green") if fixed.ok else output.styled("not fixed", "bold red")
    output.say(f"{mark}  {output.styled(fixed.check, 'bold')}  {output.visible(fixed.did)}\n")


def _print_finding(finding: FindingView) -> None:
    mark = output.styled(f"{finding.severity:<9}", _STYLES[finding.severity])
    output.say(f"{mark}  {output.styled(finding.check, 'bold')}  {output.visible(finding.about)}")
    facts = [("", finding.what), ("why", finding.why), ("do", finding.remedy)]
    for label, text in facts:
        if text:
            head = f"           {label:<4} " if label else "           "
            output.say(f"{head}{output.folded(output.visible(text), len(head))}")
    output.say("")


def _summary(found: DoctorView) -> str:
    made = output.count(len(found.examined), "check")
    numbers = [(found.number(severity), severity) for severity in SEVERITIES]
    told_ = ", ".join(
        f"{number} could not be made" if severity == "unchecked" else output.count(number, severity)
        for number, severity in numbers
        if number
    )
    fixable = sorted({finding.check for finding in found.findings if finding.fixable})
    more = f"; unstuck doctor --fix mends {', '.join(fixable)}" if fixable else ""
    return f"{made} made: {told_ or 'nothing to say'}{more}"
