"""What signatures cost: `python -m bench signing`.

How long one job takes to verify, by each algorithm, in this process; then drains of signed jobs by a worker that
requires signatures, as a share of the same drain without either. Both run in turn, and ratios are of one round.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from bench import drain
from unstuck.model.policy import Policy
from unstuck.signing import Judge, SigningKey, SigningKeys, StoredCall, micros

#: Of no-ops. To check an Ed25519 signature takes longer than all else that a worker does for such a job.
BOUNDS = {"hmac": 0.85, "ed25519": 0.3}
PREFIX = {"postgres": "", "sqlite": "sqlite-"}
#: Seconds that all cells together wait for a quiet machine: on one that is never quiet this ends, and says so.
PATIENCE = 120.0
#: Cores that others may use before a speed is chance; then CPU per job, told beside it, says more.
QUIET = 0.1
_CALLS, _TURNS = 2000, 7

Line = dict[str, Any]


def run(stores: Sequence[str], rounds: int, jobs: int | None, keep: bool) -> bool:
    """Whether both algorithms keep their share of the speed, on each database."""
    from bench.contenders.signed import HMAC, ed25519

    for key in (HMAC, ed25519()):
        print(f"verifying one job, {key.algorithm}: {verifying(key) * 1e6:.1f} µs")
    pairs = {f"{PREFIX[store]}signed-{name}": f"{PREFIX[store]}unsigned" for store in stores for name in BOUNDS}
    names = list(dict.fromkeys(name for harder, easier in pairs.items() for name in (easier, harder)))
    patience = PATIENCE / (rounds * len(names))
    lines = drain.run(names, rounds, jobs, keep, list(dict.fromkeys(pairs.values())), patience=patience)
    kept = [_keeps(harder, easier, lines) for harder, easier in pairs.items()]
    return all(kept)


def _keeps(harder: str, easier: str, lines: Sequence[Line]) -> bool:
    """Within each round, where both had the same neighbours; the median of rounds."""
    bound = BOUNDS[harder.rpartition("-")[2]]
    rounds = [
        (by_name[easier], by_name[harder])
        for number in sorted({line["round"] for line in lines})
        if {easier, harder} <= (by_name := _measured(lines, number)).keys()
    ]
    if not rounds:
        print(f"{harder}: no round in which it and {easier} were both measured")
        return False
    speed = statistics.median(signed["jobs_per_s"] / bare["jobs_per_s"] for bare, signed in rounds)
    work = statistics.median(_cpu(bare) / _cpu(signed) for bare, signed in rounds)
    parts = ", ".join(
        f"{part.removesuffix('_us')} {statistics.median(signed[part] - bare[part] for bare, signed in rounds):+.0f}"
        for part in ("supervisor_us", "executor_us", "database_us")
    )
    others = statistics.median(line["others_cores"] for pair in rounds for line in pair)
    print(
        f"{harder}: {speed:.2f} × {easier} by speed (at least {bound}), {work:.2f} × by CPU; µs/job of CPU: {parts}"
        + (f"; others used {others:.1f} cores: speed says little" if others > QUIET else "")
    )
    return speed >= bound


def _measured(lines: Sequence[Line], number: int) -> dict[str, Line]:
    return {line["contender"]: line for line in lines if line["round"] == number and "error" not in line}


def _cpu(line: Line) -> float:
    return float(line["worker_us"] + line["database_us"])


def verifying(key: SigningKey) -> float:
    """Seconds for one job, of the fastest turn but two: others use this machine too."""
    now = datetime.now(UTC)
    call = StoredCall("job", "default", "no_op", "default", None, 0, '{"args":["name",1],"kwargs":{}}', Policy())
    envelope = replace(SigningKeys([key]).sign(key, call, now), accepted_at=micros(now))
    # As a worker does: once for all jobs of a kind.
    judge = SigningKeys([key.for_verifying()]).judge_at_claim(call, envelope, now)
    assert isinstance(judge, Judge)

    def turn() -> float:
        began = time.process_time()
        for _ in range(_CALLS):
            assert judge.problem(call.job, call.payload, envelope) is None
        return (time.process_time() - began) / _CALLS

    return statistics.quantiles([turn() for _ in range(_TURNS)])[0]
