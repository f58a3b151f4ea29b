"""What every settle needs beside the transaction."""

from __future__ import annotations

from unstuck.chance import Chance
from unstuck.records import dataclass
from unstuck.store.order.name_ids import NameIds


@dataclass(frozen=True, slots=True)
class Settling:
    """What every settle needs beside the transaction."""

    name_ids: NameIds
    chance: Chance
