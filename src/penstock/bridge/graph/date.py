"""`ExpandDate` as TensorFlow operations.

In: fields of dates. Out: statements, and one term per output. Months of days are computed with whole numbers,
in the calendar of NumPy: results are bit-identical.
"""

from __future__ import annotations

from penstock.bridge.graph.number import read_marked, scale_stored
from penstock.bridge.graph.site import Site, tf
from penstock.codegen.program import Term
from penstock.schema.date import DAY
from penstock.transform.base import need_fitted
from penstock.transform.date import (
    CYCLE_DAYS,
    FIRST_DAY,
    HOUR,
    SIZES,
    THURSDAY,
    ExpandDate,
    make_circle,
    name_circle,
)


def write_expand_date(site: Site, transform: ExpandDate) -> dict[str, Term]:
    """Write `ExpandDate` as operations."""
    fitted = need_fitted(transform, site.name, transform.fitted)
    stored = read_marked(site, transform.time, fitted.time)
    present = None if fitted.has_default else stored.present
    circles: dict[str, Term] = {}
    if fitted.circles:
        numbers = stored.values
        if present is not None and fitted.fill is not None:
            numbers = site.bind_extra(
                "filled", tf.where(present, numbers, tf.constant(fitted.fill, tf.int64))
            )
        is_days = fitted.unit == "days" or not {"month", "weekday"} & set(fitted.circles)
        days = numbers if is_days else site.bind_extra("days", numbers // DAY)
        for part in fitted.circles:
            position = _find_position(site, part, numbers, days)
            points = tf.constant(site.define_constant(part.upper(), _list_points(part)))
            point = site.bind_extra(part, tf.gather(points, position))
            for column, output in enumerate(name_circle(site.name, part)):
                values = point[:, column]
                if present is not None and fitted.fill is None:
                    values = tf.where(present, values, 0.0)
                circles[output] = site.bind_extra(output.removeprefix(f"{site.name}_"), values)
    made = {**scale_stored(site, transform.time, fitted.time, stored), **circles}
    return {output.name: made[output.name] for output in transform.outputs(site.name)}


def _list_points(part: str) -> list[list[float]]:
    """Return sine and cosine of each position, with the fewest digits that give the same float32."""
    return [[float(str(each)) for each in point] for point in make_circle(SIZES[part])]


def _find_position(site: Site, part: str, numbers: Term, days: Term) -> Term:
    """Return where dates are on the circle of a part."""
    if part == "hour":
        return tf.math.floormod(numbers, DAY) // HOUR
    if part == "weekday":
        return tf.math.floormod(tf.math.floormod(days, SIZES[part]) + THURSDAY, SIZES[part])
    day = tf.math.floormod(tf.math.floormod(days, CYCLE_DAYS) + FIRST_DAY, CYCLE_DAYS)
    day = site.bind_extra("day_of_cycle", day)
    year = site.bind_extra("year", (day - day // 1460 + day // 36524 - day // 146096) // 365)
    day = site.bind_extra("day_of_year", day - (year * 365 + year // 4 - year // 100))
    return tf.math.floormod((day * 5 + 2) // 153 + 2, SIZES[part])  # March, the first month, is 2
