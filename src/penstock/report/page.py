"""The HTML page of a report: one file without scripts, and with everything inside.

In: the object that `report.py` makes. Out: the text of the page. Templates escape all that comes from data;
the page also forbids scripts and the network by a content security policy.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from penstock.decode.sample import round_measure
from penstock.foundation.wording import count, format_size
from penstock.report import charts
from penstock.report.model_drawing import draw_model
from penstock.score.evaluation import format_number
from penstock.score.score_text import (
    MEANINGS,
    format_answer,
    format_interval,
    format_score,
    format_signed,
    name_score,
)
from penstock.settings.advice import to_both
from penstock.training.history import pair_runs
from penstock.training.left_out import ADVICE

_TEMPLATES: Final = Path(__file__).parent / "templates"
_UNPRINTABLE: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufffe\uffff]")
_MOST_CHARTED: Final = 40  # fields: about 5 KB and a tenth of a second each
_MOST_CLASSES: Final = 20
_KINDS: Final = {"data": "Data set", "run": "Run, trained on", "folds": "Cross-validation of"}
_TITLES: Final = {
    "frequencies": "Values",
    "values": "Numbers",
    "lengths": "Number of values",
    "characters": "Characters",
    "widths": "Width in pixels",
    "heights": "Height in pixels",
    "formats": "Format",
    "bytes": "Size in bytes",
}


def draw_page(report: Mapping[str, Any]) -> str:
    """Return the page of a report.

    `report`: the figures, as `make_report` returns them.
    """
    environment = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=["jinja2.ext.do"],
    )
    environment.filters.update(
        advice=to_both,
        count=_format_count,
        counted=_format_counted,
        number=_format_any,
        percent=_format_percent,
        score=format_score,
        scored=name_score,
        size=format_size,
        seconds=_format_seconds,
        answer=format_answer,
        signed=format_signed,
        short=lambda value: _format_any(_round(value)),
    )
    environment.globals.update(
        charts=charts,
        columns=_choose_columns,
        titles=_TITLES,
        shares=_find_shares,
        few=_take_few,
        charted=lambda fields: fields[:_MOST_CHARTED],
        pairs=_pair_metrics,
        ranked=_rank_drops,
        meanings=MEANINGS,
        worst_classes=_find_worst_classes,
        draw_model=draw_model,
        drawn=_choose_drawn,
        overview=_summarize_field,
        worst=_find_worst,
    )
    clean = _clean(report)
    left_out = clean["run"]["left_out"] if clean["run"] else []
    for fold, parts in clean["folds"]["left_out"].items() if clean["folds"] else ():
        left_out += [{**part, "fold": fold} for part in parts]
    page = environment.get_template("page.html").render(
        **clean,
        subtitle=_describe(clean),
        tiles=_list_tiles(clean),
        sections=_list_sections(clean),
        left_out=left_out,
        advice=to_both(ADVICE),
    )
    return str(page)


def _describe(report: Mapping[str, Any]) -> str:
    """Return the line below the title."""
    paths = report["data"]["paths"] if report["data"] else []
    places = ", ".join(paths[:3]) + (", …" if len(paths) > 3 else "")
    return f"{_KINDS[report['kind']]} {places}".strip()


def _list_tiles(report: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the figures at the top of the page."""
    tiles: list[dict[str, str]] = []

    def add(name: str, value: str, more: str = "") -> None:
        tiles.append({"name": name, "value": value, "more": more})

    evaluation = report["evaluation"]
    if evaluation:
        for target, name in evaluation["main_scores"].items():
            scores, more = evaluation["targets"][target], ""
            interval = evaluation["intervals"].get(target, {}).get(name)
            if interval:
                more = f"95 %: {format_interval(interval)}"
            baseline = evaluation["baselines"].get(target, {}).get(name)
            if baseline is not None:
                more += f"{'; ' if more else ''}baseline {format_score(baseline)}"
            label = (
                f"{name_score(name)} of {target}"
                if len(evaluation["tasks"]) > 1
                else f"{name_score(name)} on {evaluation['split']}"
            )
            add(label, format_score(scores.get(name)), more)
    for target, scores in report["folds"]["mean"].items() if report["folds"] else ():
        name = next((each for each in ("r2", "auc") if scores.get(each) is not None), None)
        if name is not None:
            spread = format_score(report["folds"]["deviation"].get(target, {}).get(name))
            add(f"{name_score(name)} of {target}, mean", format_score(scores[name]), f"deviation {spread}")
    run = report["run"]
    if run:
        histories = run["histories"].values()
        epochs = sum(len(each["epochs"]) for each in histories)
        best = [each["best_epoch"] for each in histories if each["best_epoch"] is not None]
        if epochs:
            add("epochs", str(epochs), f"best: {best[0]}" if len(best) == 1 else count(len(best), "run"))
            trials, training = run["seconds"]["trials"] or 0.0, run["seconds"]["training"]
            parts = f"trials {_format_seconds(trials)}, training {_format_seconds(training)}"
            add("training time", _format_seconds(trials + training), parts if trials else "")
    if report["model"]:
        add("parameters", _format_count(report["model"]["parameters"]))
    data = report["data"]
    if data:
        add("records", _format_count(data["records"]), count(len(data["splits"]), "split"))
        add("fields", _format_count(data["num_fields"]))
        add("size", format_size(data["bytes"]))
        serious = sum(each["is_serious"] for each in data["warnings"])
        add("warnings", str(len(data["warnings"])), f"{serious} serious" if serious else "")
    return tiles


def _list_sections(report: Mapping[str, Any]) -> list[dict[str, str]]:
    """Return the sections of the page, for its navigation."""
    titles: dict[str, str] = {}
    evaluation = report["evaluation"]
    titles |= {"folds": "Folds"} if report["folds"] else {}
    if evaluation:
        titles |= {"scores": "Scores", "curves": "Curves"}
        titles |= {"importance": "Importance"} if evaluation["importance_by_target"] else {}
        titles |= {"slices": "Slices", "mistakes": "Mistakes"}
    titles |= {"training": "Training"} if report["run"] else {}
    titles |= {"model": "Model"} if report["model"] else {}
    if report["data"]:
        titles |= {"warnings": "Warnings", "splits": "Splits", "fields": "Fields"}
        titles |= {"samples": "Samples"} if report["data"]["samples"] else {}
    return [{"id": name, "title": title} for name, title in titles.items()]


def _choose_columns(num_cards: int, most: int = 4) -> int:
    """Return into how many columns cards are arranged on a wide screen, so that few leave a row unfilled.

    Example:
        >>> [_choose_columns(number) for number in (1, 2, 4, 5, 8, 12)]
        [1, 2, 4, 3, 4, 3]
    """
    if num_cards <= most:
        return max(num_cards, 1)
    if num_cards > 3 * most:
        return most
    return min((most - 1, most), key=lambda columns: -num_cards % columns / columns)


def _find_shares(part: Mapping[str, Any]) -> dict[str, list[float | None]]:
    """Return the counts of values as shares of all values of their split, of a few splits."""
    found: dict[str, list[float | None]] = {}
    for split, counts in _take_few(part["counts"]).items():
        total = sum(counts) + part["others"][split]
        found[split] = [each / total if total else None for each in counts]
    return found


def _take_few(series: Mapping[str, Any]) -> dict[str, Any]:
    """Return as many series as a chart has colours."""
    return dict(list(series.items())[: charts.NUM_COLORS])


def _choose_drawn(field: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the parts of a field that have a chart: at most two, without counts where bins say more."""
    parts = {name: part for name, part in field["parts"].items() if part["kind"] == "values" or part["edges"]}
    if "values" in parts and "frequencies" in parts:
        name = "frequencies" if len(parts["values"]["edges"]) > charts.NUM_COLORS else "values"
        del parts[name]
    parts = {name: part for name, part in parts.items() if part["kind"] == "numbers" or part["values"]}
    return list(parts.items())[:2]


def _pair_metrics(histories: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return one chart per metric: curves of training and validation; of several runs, of validation."""
    pairs = pair_runs({run: history["metrics"] for run, history in histories.items()})
    return {
        name: {label: (list(range(1, len(values) + 1)), values) for label, values in curves.items()}
        for name, curves in pairs.items()
    }


def _find_worst_classes(classes: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return the classes with the lowest F1, among those that have records."""
    known = [each for each in classes if each["support"] and each["f1"] is not None]
    return sorted(known, key=lambda each: float(each["f1"]))[:_MOST_CLASSES]


def _rank_drops(drops: Mapping[str, float | None], most: int = 20) -> dict[str, float | None]:
    """Return the inputs that matter most, with their drops of the score."""
    known = {name: drop for name, drop in drops.items() if drop is not None}
    return dict(sorted(known.items(), key=lambda item: -item[1])[:most])


def _summarize_field(field: Mapping[str, Any]) -> dict[str, Any]:
    """Return the row of a field in the table of all fields: figures of the first split, usually train."""
    split = next((name for name, each in field["splits"].items() if each["count"]), None)
    row: dict[str, Any] = dict.fromkeys(("distinct", "mean", "min", "median", "max"), "")
    row["missing"] = None if split is None else field["splits"][split]["missing_share"]
    parts = field["parts"]
    values = parts.get("frequencies")
    if values and split in values["num_distinct"]:
        row["distinct"] = ("" if values["is_complete"] else "≥ ") + f"{values['num_distinct'][split]:,}"
    numbers = parts.get("values") or parts.get("characters") or parts.get("widths")
    summary = numbers["summary"].get(split) if numbers else None
    if summary:
        row |= {
            "mean": "" if "first" in summary else _format_any(_round(summary["mean"])),
            "min": summary.get("first") or _format_any(summary["min"]),
            "median": "" if "first" in summary else _format_any(_round(summary["quantiles"].get("0.5"))),
            "max": summary.get("last") or _format_any(summary["max"]),
        }
    worst = [_find_worst(each) for each in field["drift"].values()]
    found = [each for each in worst if each is not None]
    row["drift"] = max((each["distance"] for each in found), default=None)
    row["is_notable"] = any(each["is_notable"] for each in found)
    return row


def _round(value: float | None) -> float | None:
    return None if value is None else round_measure(value)


def _find_worst(drifts: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Return the drift that is farthest beyond chance."""
    return max(drifts, key=lambda each: (each["is_notable"], each["distance"]), default=None)


def _clean(value: Any) -> Any:
    """Return a value in which texts have no characters that a page cannot hold."""
    if isinstance(value, str):
        return _UNPRINTABLE.sub("\ufffd", value)
    if isinstance(value, Mapping):
        return {_clean(key): _clean(each) for key, each in value.items()}
    return [_clean(each) for each in value] if isinstance(value, list | tuple) else value


def _format_count(value: int) -> str:
    return f"{value:,}"


def _format_counted(value: int, noun: str) -> str:
    return f"{value:,} {noun}" if value == 1 else f"{value:,} {noun}s"


def _format_any(value: float | None) -> str:
    if value is None:
        return "–"
    is_large = isinstance(value, int) or (float(value).is_integer() and abs(value) < 1e15)
    return f"{value:,.0f}" if is_large else format_number(value)


def _format_percent(value: float | None) -> str:
    if value is None:
        return "–"
    if 0 < value < 0.001:
        return "< 0.1 %"
    return f"{100 * value:.3g} %"


def _format_seconds(value: float) -> str:
    if value < 60:
        return f"{value:.1f} s"
    minutes, seconds = divmod(round(value), 60)
    hours, minutes = divmod(minutes, 60)
    # Non-breaking spaces, so that a narrow tile has no unit alone in a line.
    return f"{hours}\u00a0h {minutes}\u00a0min" if hours else f"{minutes}\u00a0min {seconds}\u00a0s"
