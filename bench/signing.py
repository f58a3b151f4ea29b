"""What signatures cost: `python -m bench signing`.

How long one job takes to verify, by each algorithm, in this process; then drains of signed jobs by a worker that
requires signatures, as a share of the same drain without either.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

from bench import drain
from unstuck.model.policy import Policy
from unstuck.signing import SigningKey, SigningKeys, StoredCall, micros

#: Of no-ops. To check an Ed25519 signature takes longer than all else that a worker does for such a job.
BOUNDS = {"hmac": 0.85, "ed25519": 0.3}
PREFIX = {"postgres": "", "sqlite": "sqlite-"}
_CALLS, _TURNS = 2000, 7


def run(stores: Sequence[str], rounds: int, jobs: int | None, keep: bool) -> bool:
    """Whether both algorithms keep their share of the speed, on each database."""
    from bench.contenders.signed import HMAC, ed25519

    for key in (HMAC, ed25519()):
        print(f"verifying one job, {key.algorithm}: {verifying(key) * 1e6:.1f} µs")
    pairs = {f"{PREFIX[store]}signed-{name}": f"{PREFIX[store]}unsigned" for store in stores for name in BOUNDS}
    medians = drain.ratios(pairs, rounds, jobs, keep)
    for name, ratio in medians.items():
        print(f"{name}: {ratio:.2f} × {pairs[name]} (at least {_bound(name)})")
    return all(ratio >= _bound(name) for name, ratio in medians.items())


def _bound(name: str) -> float:
    return BOUNDS[name.rpartition("-")[2]]


def verifying(key: SigningKey) -> float:
    """Seconds for one job, of the fastest turn but two: others use this machine too."""
    now = datetime.now(UTC)
    call = StoredCall("job", "default", "no_op", "default", None, 0, '{"args":["name",1],"kwargs":{}}', Policy())
    envelope = replace(SigningKeys([key]).sign(key, call, now), accepted_at=micros(now))
    keys = SigningKeys([key.for_verifying()])

    def turn() -> float:
        began = time.process_time()
        for _ in range(_CALLS):
            assert keys.problem_at_claim(call, envelope, now) is None
        return (time.process_time() - began) / _CALLS

    return statistics.quantiles([turn() for _ in range(_TURNS)])[0]
