"""Where labels stand and in which order boxes are read, by value."""

import random

from browser_workers.observation.mark_labels import place_labels
from browser_workers.observation.reading_order import reading_order

SCREENSHOT = (400, 300)
LABEL = (16, 12)
Box = tuple[int, int, int, int]


def placed(*boxes: Box) -> list[Box]:
    return place_labels(boxes, [LABEL] * len(boxes), SCREENSHOT)


def meet(a: Box, b: Box) -> bool:
    return a[0] < b[0] + b[2] and b[0] < a[0] + a[2] and a[1] < b[1] + b[3] and b[1] < a[1] + a[3]


def test_a_label_stands_above_the_top_right_corner() -> None:
    assert placed((100, 50, 80, 20)) == [(164, 38, 16, 12)]


def test_near_the_top_edge_it_stands_below_the_bottom_right_corner() -> None:
    assert placed((100, 5, 80, 20)) == [(164, 25, 16, 12)]


def test_it_stays_within_the_screenshot() -> None:
    assert placed((0, 100, 5, 5)) == [(0, 88, 16, 12)]
    assert placed((390, 280, 30, 40)) == [(384, 268, 16, 12)]


def test_it_does_not_cover_a_small_element_above() -> None:
    upper, lower = placed((100, 50, 14, 14), (100, 66, 14, 14))
    assert upper == (98, 38, 16, 12)
    assert lower == (84, 66, 16, 12)
    assert not meet(lower, (100, 50, 14, 14))


def test_it_may_cover_a_corner_of_what_is_large() -> None:
    assert placed((0, 0, 400, 290), (100, 50, 80, 20))[1] == (164, 38, 16, 12)


def test_labels_of_one_corner_stand_beside_each_other() -> None:
    places = placed(*[(100, 100, 60, 40)] * 6)
    assert places[0] == (144, 88, 16, 12)
    assert not any(meet(a, b) for position, a in enumerate(places) for b in places[:position])


def test_labels_meet_only_where_there_is_no_room() -> None:
    draw = random.Random(7)
    boxes = [
        (draw.randrange(0, 1200), draw.randrange(0, 700), draw.randrange(20, 90), draw.randrange(14, 40)) for _ in range(150)
    ]
    places = place_labels(boxes, [(20, 16)] * len(boxes), (1280, 768))
    assert sum(meet(a, b) for position, a in enumerate(places) for b in places[:position]) == 0
    assert all(x >= 0 and y >= 0 and x + w <= 1280 and y + h <= 768 for x, y, w, h in places)
    assert places == place_labels(boxes, [(20, 16)] * len(boxes), (1280, 768))


def test_reading_order_goes_by_lines() -> None:
    assert reading_order([(100, 2, 10, 20), (0, 50, 10, 20), (0, 0, 10, 20)]) == [2, 0, 1]


def test_a_tall_box_does_not_draw_lower_lines_into_its_own() -> None:
    tall, first, second = (0, 0, 50, 600), (60, 280, 50, 20), (60, 400, 50, 20)
    assert reading_order([second, first, tall]) == [1, 2, 0]


def test_equal_boxes_keep_their_order() -> None:
    assert reading_order([(0, 0, 5, 5), (0, 0, 5, 5)]) == [0, 1]
    assert reading_order([]) == []
