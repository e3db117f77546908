"""Charts: rows in, an interactive picture out; hover shows the numbers, ``alt`` says it in words.

Colour is never the only sign: classes differ by shape and dash, parts by their names in the bar.
Domains are set by hand, since an automatic one puts the highest roof on the frame's edge.

Units    Base units; axes write them with SI prefixes.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import altair as alt
import pandas
import streamlit as st

Rows = Sequence[Mapping[str, Any]]
COLOURS = ("#4c78a8", "#f58518", "#54a24b", "#b279a2", "#e45756", "#72b7b2", "#9d755d", "#eeca3b")
SHAPES = ("circle", "triangle-up", "square", "diamond", "cross", "triangle-down")
HEIGHT = 420
ROOFLINE_HEIGHT = 660
"""Pixels, legends below the chart included."""
_HEADROOM = 2.0
_MANY_DECADES = 3
_LEGEND_COLUMNS = 2
_ABOVE = alt.Legend(orient="top")
"""Short legends above and the long one below: a telephone shows both whole."""
COLOURS = ("#4c78a8", "#f58518", "#54a24b", "#b279a2", "#e45756", "#72b7b2", "#9d755d", "#eeca3b")
SHAPES = ("circle", "triangle-up", "square", "diamond", "cross", "triangle-down")
HEIGHT = 420
ROOFLINE_HEIGHT = 660
"""Pixels, legends below the chart included."""
_HEADROOM = 2.0
_MANY_DECADES = 3
_LEGEND_COLUMNS = 2


def log_scale(values: Sequence[float], margin: float = _HEADROOM) -> alt.Scale:
    """A logarithmic scale that ends past the values."""
    positive = [value for value in values if value > 0] or [1.0]
    return alt.Scale(
        type="log", domain=[min(positive) / margin, max(positive) * margin], nice=False
    )


def _axis(unit: str, scale: alt.Scale) -> alt.Axis:
    """A logarithmic axis with few ticks: each decade, or 1, 2 and 5 of each where there are few."""
    low, high = scale.domain
    decades = range(math.floor(math.log10(low)), math.floor(math.log10(high)) + 1)
    steps = (1,) if len(decades) > _MANY_DECADES else (1, 2, 5)
    ticks = [float(f"{step}e{decade}") for decade in decades for step in steps]
    return alt.Axis(
        labelExpr=f"format(datum.value, '~s') + '{unit}'", labelOverlap=True,
        values=[tick for tick in ticks if low <= tick <= high],
    )  # fmt: skip


def draw(chart: Any, alt_text: str, key: str) -> None:
    """Put a chart on the page with its words for those who cannot see it."""
    st.altair_chart(chart, width="stretch", key=key, alt=alt_text)


def roofline_chart(roofs: Rows, ridges: Rows, steps: Rows, sweep: Rows) -> Any:
    """Roofs as lines, ridges as squares, steps as points, the batch sweep as a trail."""
    every = [*steps, *sweep]
    x_scale = log_scale([row["intensity_flop_per_byte"] for row in roofs], 1.0)
    heights = [row["flop_per_s"] for row in every] + [row["flop_per_s"] for row in roofs]
    y_scale = log_scale(heights)
    x = alt.X("intensity_flop_per_byte:Q", scale=x_scale, axis=_axis("", x_scale),
              title="FLOP per byte that must move")  # fmt: skip
    y = alt.Y("flop_per_s:Q", scale=y_scale, axis=_axis("FLOP/s", y_scale), title=None)
    dash = alt.StrokeDash("roof:N", title="roof", legend=alt.Legend(
        orient="bottom", direction="vertical", columns=1, labelLimit=400,
        symbolSize=300))  # fmt: skip
    lines = (
        alt.Chart(_frame(roofs))
        .mark_line(strokeWidth=2)
        .encode(x=x, y=y, strokeDash=dash,
                color=alt.Color("roof:N", title="roof", scale=alt.Scale(range=list(COLOURS))),
                tooltip=["roof:N", "class:N", _number("intensity_flop_per_byte", "FLOP/B"),
                         _number("flop_per_s", "FLOP/s")])
    )  # fmt: skip
    layers = [lines]
    if ridges:
        marks = [{**row, "intensity_flop_per_byte": row["ridge_flop_per_byte"]} for row in ridges]
        layers.append(
            alt.Chart(_frame(marks))
            .mark_point(shape="square", filled=True, size=70, color="gray")
            .encode(x=x, y=y, tooltip=["compute:N", "class:N", "origin:N",
                                       _number("ridge_flop_per_byte", "ridge, FLOP/B")])
        )  # fmt: skip
    layers += _trail(sweep, x, y) + _steps(steps, x, y)
    chart = alt.layer(*layers).resolve_scale(
        color="independent", shape="independent", strokeDash="independent"
    )
    return chart.properties(height=ROOFLINE_HEIGHT)


def _trail(sweep: Rows, x: Any, y: Any) -> list[Any]:
    if not sweep:
        return []
    estimates = [dict(row) for row in sweep if row["class"] == "estimate"]
    for row in estimates:
        row["named"] = row in (estimates[0], estimates[-1])
        row["label"] = f"batch {row['batch']:,}"
    tooltip = ["batch:Q", "class:N", "fits:N", "time:N", "limited by:N",
               _number("intensity_flop_per_byte", "FLOP/B")]  # fmt: skip
    base = alt.Chart(_frame(estimates)).encode(x=x, y=y, tooltip=tooltip)
    shape = alt.Shape("fits:N", title="batch fits", scale=alt.Scale(
        domain=["yes", "no"], range=["circle", "cross"]), legend=_ABOVE)  # fmt: skip
    return [
        base.mark_line(strokeWidth=1, color=COLOURS[2], opacity=0.7),
        base.mark_point(size=40, color=COLOURS[2], filled=True, opacity=0.8).encode(shape=shape),
        base.transform_filter("datum.named")
        .mark_text(dy=16, align="left", fontSize=11, color=COLOURS[2])
        .encode(text="label:N"),
    ]


def _steps(steps: Rows, x: Any, y: Any) -> list[Any]:
    frame = _frame(steps)
    words = [row["class"] for row in steps if row["class"] != "estimate"]
    domain = [*dict.fromkeys(words), "estimate"]
    shape = alt.Shape("class:N", title="class", scale=alt.Scale(
        domain=domain, range=["triangle-up", "diamond"]), legend=_ABOVE)  # fmt: skip
    base = alt.Chart(frame).encode(x=x, y=y)
    tooltip = ["step:N", "class:N", "time:N", "limited by:N",
               _number("intensity_flop_per_byte", "FLOP/B"),
               _number("flop_per_s", "FLOP/s")]  # fmt: skip
    points = base.mark_point(size=140, filled=True, color=COLOURS[4]).encode(
        shape=shape, tooltip=tooltip
    )
    bars = base.transform_filter("isValid(datum.slow_flop_per_s)").mark_rule(
        strokeWidth=2, color=COLOURS[4]
    ).encode(y=alt.Y("slow_flop_per_s:Q"), y2="fast_flop_per_s:Q")  # fmt: skip
    words_at = base.transform_filter("datum.class == 'estimate'").mark_text(
        dx=10, align="left", fontWeight="bold", color=COLOURS[4]
    ).encode(text="step:N")  # fmt: skip
    return [bars, points, words_at]


def _number(name: str, title: str) -> alt.Tooltip:
    return alt.Tooltip(f"{name}:Q", title=title, format=".3s")


def _frame(rows: Rows) -> pandas.DataFrame:
    return pandas.DataFrame([dict(row) for row in rows])


def stacked_bar(parts: Sequence[tuple[str, float, str]], limit: float | None) -> Any:
    """One bar of named parts (name, size, size in words), a rule where the limit is."""
    rows: list[dict[str, Any]] = []
    begin = 0.0
    for name, size, words in parts:
        rows.append({"part": name, "begin": begin, "end": begin + size,
                     "middle": begin + size / 2, "size": words})  # fmt: skip
        begin += size
    end = max(begin, limit or 0.0)
    frame = _frame([row for row in rows if row["end"] > row["begin"]])
    x_scale = alt.Scale(domain=[0, end * 1.02], nice=False)
    x = alt.X("begin:Q", scale=x_scale, title=None, axis=None)
    names = [name for name, _, _ in parts]
    bars = alt.Chart(frame).mark_bar(stroke="gray", strokeWidth=1, height=44).encode(
        x=x, x2="end:Q",
        color=alt.Color("part:N", title=None, sort=names, scale=alt.Scale(
            domain=names, range=[*COLOURS[: len(names) - 1], "#cccccc"]),
            legend=alt.Legend(orient="bottom", columns=_LEGEND_COLUMNS)),
        tooltip=["part:N", "size:N"],
    )  # fmt: skip
    wide = frame[(frame["end"] - frame["begin"]) > 0.12 * end]
    text = alt.Chart(wide).mark_text(fontWeight="bold", color="#111111", fontSize=12).encode(
        x=alt.X("middle:Q", scale=x_scale), text="part:N"
    )  # fmt: skip
    layers = [bars, text]
    if limit is not None:
        rule = alt.Chart(_frame([{"limit": limit, "what": "usable"}]))
        layers.append(rule.mark_rule(strokeWidth=3, strokeDash=[6, 3], color="#e45756").encode(
            x=alt.X("limit:Q", scale=x_scale), tooltip=["what:N"]))  # fmt: skip
    lines = -(-len(names) // _LEGEND_COLUMNS)
    return alt.layer(*layers).properties(height=110 + 24 * lines)


def bars(rows: Rows, value: str, name: str, title: str, *, mark: str = "", text: str = "") -> Any:
    """Horizontal bars, one a row, in the order given; ``mark`` says a kind in words and hatch."""
    frame = _frame(rows)
    order = list(dict.fromkeys(row[name] for row in rows))
    base = alt.Chart(frame).encode(
        y=alt.Y(f"{name}:N", sort=order, title=None, axis=alt.Axis(labelLimit=140)),
    )
    largest = max((float(row[value]) for row in rows), default=1.0) or 1.0
    x = alt.X(f"{value}:Q", title=title, scale=alt.Scale(domain=[0, largest * 1.35], nice=False),
              axis=alt.Axis(format="~g"))  # fmt: skip
    shown = [f"{name}:N", f"{value}:Q"]
    layers = []
    if mark:
        kinds = list(dict.fromkeys(row[mark] for row in rows))
        shown.append(f"{mark}:N")
        layers.append(base.mark_bar(stroke="gray", strokeWidth=0.5).encode(
            x=x, tooltip=shown, yOffset=alt.YOffset(f"{mark}:N", sort=kinds),
            color=alt.Color(
                f"{mark}:N", sort=kinds, title=None,
                scale=alt.Scale(domain=kinds, range=list(COLOURS[: len(kinds)])),
                legend=alt.Legend(orient="bottom", columns=1, labelLimit=300),
            )))  # fmt: skip
    else:
        layers.append(base.mark_bar(color=COLOURS[0]).encode(x=x, tooltip=shown))
    if text:
        words = base.mark_text(align="left", dx=4, fontSize=11, color="gray").encode(
            x=x, text=f"{text}:N"
        )
        layers.append(words.encode(yOffset=alt.YOffset(f"{mark}:N", sort=kinds)) if mark else words)
    height = max(120, 26 * len(rows) + (110 if mark else 40))
    return alt.layer(*layers).properties(height=height)


def points(rows: Rows, x: str, y: str, titles: tuple[str, str], *, kind: str,
           filled: str = "", diagonal: bool = False, unit: str = "",
           tooltip: Sequence[str] = (), line: bool = False) -> Any:  # fmt: skip
    """Points of several kinds, each with its own shape; ``filled`` names a yes/no column."""
    xs, ys = [float(row[x]) for row in rows], [float(row[y]) for row in rows]
    kinds = list(dict.fromkeys(str(row[kind]) for row in rows))
    if diagonal:
        xs = ys = [*xs, *ys]
    scales = [log_scale(one, 1.3) for one in (xs, ys)]
    shapes = [SHAPES[place % len(SHAPES)] for place in range(len(kinds))]
    colours = [COLOURS[place % len(COLOURS)] for place in range(len(kinds))]
    base = alt.Chart(_frame(rows)).encode(
        x=alt.X(f"{x}:Q", scale=scales[0], title=titles[0], axis=_axis(unit, scales[0])),
        y=alt.Y(f"{y}:Q", scale=scales[1], title=titles[1], axis=_axis(unit, scales[1])),
        color=alt.Color(f"{kind}:N", title=None, scale=alt.Scale(domain=kinds, range=colours),
                        legend=alt.Legend(orient="bottom", columns=3, labelLimit=260)),
        shape=alt.Shape(f"{kind}:N", title=None, scale=alt.Scale(domain=kinds, range=shapes)),
        tooltip=list(tooltip) or [f"{kind}:N", f"{x}:Q", f"{y}:Q"],
    )  # fmt: skip
    layers = [base.mark_point(size=45, opacity=0.75)]
    if filled:
        met = base.transform_filter(f"datum['{filled}'] == 'yes'")
        layers.append(met.mark_point(size=45, filled=True, opacity=0.9))
    if line:
        layers.insert(0, base.mark_line(strokeWidth=1, opacity=0.6))
    if diagonal:
        ends = [min(one for one in xs if one > 0), max(xs)]
        layers.insert(0, alt.Chart(_frame([{x: end, y: end} for end in ends])).mark_line(
            color="gray", strokeDash=[4, 4]).encode(
            x=alt.X(f"{x}:Q", scale=scales[0]), y=alt.Y(f"{y}:Q", scale=scales[1])))  # fmt: skip
    return alt.layer(*layers).properties(height=HEIGHT)
