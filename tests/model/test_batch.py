"""A batch shrinks with what it costs, down to the single item, and grows back."""

from __future__ import annotations

from unstuck.model.batch import Batch


def test_what_fails_is_tried_with_far_fewer_down_to_one() -> None:
    batch, sizes = Batch(1000), list[int]()
    for _ in range(6):
        batch.failed()
        sizes.append(batch.size)
    assert sizes == [250, 62, 15, 3, 1, 1]


def test_what_is_slow_is_tried_with_half_but_slowness_alone_never_makes_it_one_by_one() -> None:
    batch, sizes = Batch(1000), list[int]()
    for _ in range(6):
        batch.took(1.1, aim=1.0)
        sizes.append(batch.size)
    assert sizes == [500, 250, 125, 62, 62, 62]
    batch.failed()
    batch.took(1.1, aim=1.0)
    assert batch.size == 15


def test_what_is_quick_doubles_back_and_what_is_about_right_stays() -> None:
    batch = Batch(1000, size=100)
    batch.took(0.8, aim=1.0)
    assert batch.size == 100
    for _ in range(5):
        batch.took(0.1, aim=1.0)
    assert batch.size == 1000
