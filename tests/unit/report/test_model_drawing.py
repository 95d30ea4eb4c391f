"""The drawing of a model: what feeds what, read from the SVG as a person would."""

import re

from penstock.report.model_drawing import MOST_ALIKE, MOST_BLOCKS, draw_model

NUMBER = r"(-?[\d.]+)"
CURVE = re.compile(rf'd="M {NUMBER} {NUMBER} C [^"]*? {NUMBER} {NUMBER}"')
LINE = re.compile(rf'd="M {NUMBER} {NUMBER} L {NUMBER} {NUMBER}"')
TEXT = re.compile(rf'<text[^>]*? x="{NUMBER}" y="{NUMBER}"[^>]*>(.*?)</text>')


def make_ranks(*ranks):
    """Return blocks from pairs of a number and what it reads, by rank."""
    return [
        [
            {"number": number, "title": f"block{number}", "kind": "layers", "sources": sources}
            for number, sources in rank
        ]
        for rank in ranks
    ]


def follow(drawing):
    """Return the numbers of the blocks that each block reads, by the ends of the lines."""
    texts = [(float(x), float(y) - 3.6, text.split()[0]) for x, y, text in TEXT.findall(drawing)]
    lines = [tuple(map(float, each)) for each in CURVE.findall(drawing) + LINE.findall(drawing)]

    def find(x, y):
        """Return the block at a point beside its box."""
        return [name for left, top, name in texts if abs(left - x) < 60 and abs(top - y) < 3]

    found = set()
    for x0, y0, x1, y1 in lines:
        for source in find(x0 - 43, y0):
            ends, known = [(x1, y1)], set()
            while ends:
                x, y = ends.pop()
                found |= {(int(source), int(target)) for target in find(x + 43, y)}
                if (x, y) not in known and not find(x + 43, y):
                    known.add((x, y))
                    ends += [(to_x, to_y) for a, b, to_x, to_y in lines if abs(a - x) < 1 and abs(b - y) < 1]
    return found


def test_lines_lead_from_each_block_to_its_readers():
    ranks = make_ranks([(1, []), (2, []), (3, [])], [(4, [1, 3])], [(5, [2, 4])], [(6, [5, 1]), (7, [5])])
    found = follow(draw_model(ranks))
    assert found == {(1, 4), (3, 4), (2, 5), (4, 5), (5, 6), (1, 6), (5, 7)}


def test_blocks_do_not_overlap_and_arrows_pass_between_them():
    ranks = make_ranks([(1, []), (2, [])], [(3, [1]), (4, [2])], [(5, [1, 2, 3, 4])])
    drawing = draw_model(ranks)
    places = [(float(x), float(y)) for x, y, _ in TEXT.findall(drawing)]
    passing = [tuple(map(float, each)) for each in LINE.findall(drawing)]
    assert len(passing) == 2
    for x, y in places:
        assert all(abs(y - other) >= 20 for left, other in places if left == x and other != y)
        for x0, y0, x1, _ in passing:
            assert not x0 < x < x1 or abs(y - 3.6 - y0) > 10


def test_drawing_has_a_text_for_those_who_cannot_see_it():
    ranks = make_ranks([(1, []), (2, [])], [(3, [1, 2])])
    ranks[0][0]["title"] = '"<script>'
    drawing = draw_model(ranks)
    assert "<script>" not in drawing
    assert "3 block3 reads 1 &#34;&lt;script&gt;, 2 block2" in drawing


def test_many_like_blocks_are_drawn_as_one():
    many = [(number, []) for number in range(1, 301)]
    drawing = draw_model(make_ranks(many, [(301, [number for number, _ in many])]))
    texts = [text for _, _, text in TEXT.findall(drawing)]
    assert len(texts) == MOST_ALIKE + 1
    assert f"and {300 - MOST_ALIKE + 1} more" in texts


def test_single_blocks_and_huge_models_have_no_drawing():
    assert draw_model(make_ranks([(1, [])])) == ""
    chain = make_ranks([(1, [])], *([(number, [number - 1])] for number in range(2, MOST_BLOCKS + 2)))
    assert draw_model(chain) == ""
    assert draw_model(chain[:-1])


def test_long_and_wide_titles_fit_their_box():
    ranks = make_ranks([(1, [])], [(2, [1])])
    ranks[0][0]["title"] = "a_name_of_a_column_that_is_much_longer_than_a_box_of_the_drawing"
    ranks[1][0]["title"] = "長い名前" * 9
    texts = [text for _, _, text in TEXT.findall(draw_model(ranks))]
    assert max(map(len, texts)) <= 13
    assert len(texts) == 6
    assert sum("…" in text for text in texts) == 2
    assert max(len(text) for text in texts if "長" in text) <= 7


def test_fields_the_model_does_not_read_are_dashed_boxes_without_arrows():
    ranks = make_ranks([(1, []), (3, [])], [(2, [1])])
    ranks[0][1] |= {"title": "note: not read", "kind": "unread", "inputs": ["note"]}
    drawing = draw_model(ranks)
    assert follow(drawing) == {(1, 2)}
    assert drawing.count("stroke-dasharray") == 1
    assert "3 note: not" in drawing
    assert "No block reads note." in drawing
    assert "stroke-dasharray" not in draw_model(make_ranks([(1, [])], [(2, [1])]))
