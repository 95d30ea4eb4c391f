"""Pages of reports, read as a browser does."""

import html.parser
import re
from itertools import pairwise


class Reader(html.parser.HTMLParser):
    """Reads a page as a browser does: names of tags, attributes and texts."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.given, self.texts, self.labels = [], [], [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        self.given += [(tag, name, value or "") for name, value in attrs]
        if tag in ("img", "svg"):
            self.labels.append(dict(attrs).get("alt" if tag == "img" else "aria-label"))

    def handle_data(self, data):
        self.texts.append(data)


def check_page(page):
    """Return a page as it was read, which neither runs code nor loads anything."""
    read = Reader(page)
    assert not {"script", "iframe", "object", "embed", "link", "base", "form", "foreignobject"} & set(
        read.tags
    )
    assert not [each for each in read.given if each[1].startswith("on")]
    for tag, name, value in read.given:
        if name in ("src", "href", "xlink:href"):
            assert value.startswith(("#", "data:image/")), (tag, name, value)
    assert "url(" not in page
    assert "@import" not in page
    assert all(read.labels)  # for those who cannot see pictures and charts
    levels = [int(tag[1]) for tag in read.tags if re.fullmatch("h[1-6]", tag)]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))
    policy = next(value for tag, name, value in read.given if "default-src" in value)
    assert "default-src 'none'" in policy
    assert "script-src" not in policy
    assert page.count("<main") == page.count("</main>") == 1
    names = [value for _, name, value in read.given if name == "id"]
    assert len(names) == len(set(names))
    for _, name, value in read.given:
        if name == "href" and value.startswith("#"):
            assert value[1:] in names
    return read
