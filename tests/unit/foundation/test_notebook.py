"""Lines of progress in a notebook: one output, updated, without terminal escapes."""

import sys
from types import SimpleNamespace

import pytest

from penstock.foundation import notebook
from penstock.foundation.notebook import NotebookLines, is_notebook


class Frontend:
    """Keeps the outputs that a notebook would show."""

    def __init__(self):
        self.outputs = []
        self.is_gone = False

    def show(self, data, is_update):
        if self.is_gone:
            raise ConnectionError("no frontend")
        if is_update:
            self.outputs[-1] = data["text/plain"]
        else:
            self.outputs.append(data["text/plain"])


@pytest.fixture
def frontend():
    return Frontend()


def test_lines_share_one_output(frontend):
    lines = NotebookLines(frontend.show)
    lines.print("first")
    lines.draw(["at 50 %"])
    lines.draw(["at 90 %"])
    assert frontend.outputs == ["first\nat 90 %"]
    lines.print("second")
    assert frontend.outputs == ["first\nsecond"]
    lines.draw(["more"])
    lines.clear()
    assert frontend.outputs == ["first\nsecond"]


def test_escapes_of_a_terminal_are_written_as_text(frontend):
    lines = NotebookLines(frontend.show)
    lines.print("a\x1b[31m")
    lines.draw(["b\r\x1b[K"])
    assert frontend.outputs == ["a\\x1b[31m\nb\\r\\x1b[K"]


def test_very_many_lines_are_limited(frontend, monkeypatch):
    monkeypatch.setattr(notebook, "_MAX_LINES", 3)
    lines = NotebookLines(frontend.show)
    for number in range(10):
        lines.print(f"line {number}")
    assert frontend.outputs == ["… 7 lines before\nline 7\nline 8\nline 9"]


def test_frontend_that_is_gone_ends_the_display_alone(frontend):
    lines = NotebookLines(frontend.show)
    frontend.is_gone = True
    lines.print("first")
    lines.draw(["second"])
    assert lines.is_broken
    assert not lines.is_live


def test_draws_are_at_most_two_per_second(frontend):
    now = [0.0]
    lines = NotebookLines(frontend.show, clock=lambda: now[0])
    assert lines.is_due()
    now[0] = 0.4
    assert not lines.is_due()
    now[0] = 0.6
    assert lines.is_due()


@pytest.mark.parametrize(
    ("shell", "is_kernel"), [(None, False), (SimpleNamespace(), False), (SimpleNamespace(kernel=1), True)]
)
def test_notebook_is_recognized_by_its_kernel(monkeypatch, shell, is_kernel):
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert is_notebook() == is_kernel


def test_program_without_ipython_is_not_a_notebook(monkeypatch):
    monkeypatch.delitem(sys.modules, "IPython", raising=False)
    assert not is_notebook()
    assert "IPython" not in sys.modules
