"""Names: for how long routes and targets that nobody means any more are kept. See `store/order/name_ids.py`."""

from __future__ import annotations

from typing import Final

#: Seconds for which a process uses the number of a name that it has looked up.
LIFE: Final = 3600.0
#: A lookup of a name that was last used longer ago than this writes its use into its row.
NAMED_EVERY: Final = 86400.0
#: What was last meant longer ago than this may go: NAMED_EVERY + LIFE, with a day to spare.
KEPT: Final = 2 * 86400.0
