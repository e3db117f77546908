"""What ``roofline validate`` shows: scores, memory, training, and runs beside predictions."""

from typing import TYPE_CHECKING, Any

from roofline.report.answer import Answer, Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from roofline.validation.beside import Beside
    from roofline.validation.datasets import Left
    from roofline.validation.scores import Point, Score
    from roofline.validation.validate import Validation


def scores_answer(
    validation: "Validation", names: "Sequence[str]", worst: int, grown: "Sequence[str]"
) -> Answer:
    """Errors by group, what was left out, worst and closest rows."""
    overall = validation.overall()
    found = validation.violations()
    lines = [
        f"{validation.total:,} rows; {overall.bounded:,} bounded, {overall.rows:,} estimated "
        "by terms fitted without them",
        f"bounds above a measurement: {len(found)}; closest {overall.tightest:.2f} × its bound",
    ]
    if overall.rows:
        lines.append(
            f"error: median {overall.median_error:.1%}, 90th percentile {overall.p90_error:.1%}, "
            f"bias {overall.bias:+.1%}; {overall.coverage:.0%} inside their interval"
        )
    results = validation.to_dict()
    results["worst"] = [point.to_dict() for point in validation.worst(worst)]
    return Answer(
        command="validate",
        inputs={"what": list(names), "by": list(validation.by), "engine": validation.engine,
                "accelerator": validation.accelerator, "model": validation.model},
        results=results,
        tables=[
            _scores_table(validation.scores(), validation.by),
            _left_table(validation.left),
            *_points_table("Worst estimates", validation.worst(worst)),
            *_points_table("Closest to their bound", validation.closest(min(worst, 10))),
        ],
        lines=lines,
        warnings=list(grown),
    )  # fmt: skip


def _scores_table(scores: "Sequence[Score]", by: "Sequence[str]") -> Table:
    return Table(
        "Errors by group",
        [*by, "rows", "median error", "90th pct", "bias", "inside", "high/low", "bounded",
         "bound above", "closest"],
        [
            [*each.key.values(), each.rows, *(_percent(v) for v in (each.median_error,
             each.p90_error)), _percent(each.bias, signed=True), _percent(each.coverage),
             _times(each.width), each.bounded, each.violations, _times(each.tightest)]
            for each in scores
        ],
    )  # fmt: skip


def _percent(value: float, *, signed: bool = False) -> str:
    if value != value:  # NaN: no rows
        return "–"
    return f"{value:+.1%}" if signed else f"{value:.1%}"


def _times(value: float) -> str:
    return "–" if value != value else f"{value:.2f}×"


def _left_table(left: "Sequence[Left]") -> Table:
    return Table(
        "Left out, and why",
        ["data set", "judges no", "rows", "what", "reason"],
        [[each.dataset, each.use, each.rows, each.name, each.reason] for each in left],
    )


def _points_table(title: str, points: "Sequence[Point]") -> list[Table]:
    from roofline.validation.datasets import shown

    columns = ["id", "engine", "accelerator", "model", "quantity", "setting", "measured",
               "estimate", "bound", "measured/bound"]  # fmt: skip
    rows = [
        [p.id, p.engine, p.accelerator, p.model, p.quantity, p.setting, shown(p, p.measured),
         shown(p, p.mid), shown(p, p.bound), _times(p.over_bound)]
        for p in points
    ]  # fmt: skip
    return [Table(title, columns, rows)] if rows else []


def memory_answer(worst: int) -> Answer:
    """Memory against engines' logs and files."""
    from roofline.validation.memory import validate_memory

    found = validate_memory()
    summary = found.summary()
    columns = list(summary[0])
    rows = [[_shown(each[name]) for name in columns] for each in summary]
    largest = found.largest(worst)
    refused = [[each.id, each.reason] for each in found.refused]
    return Answer(
        command="validate",
        inputs={"what": ["memory"]},
        results={"summary": summary, "rows": [vars(row) | {"error": row.error}
                 for row in found.rows], "refused": [vars(each) for each in found.refused]},
        tables=[
            Table("Memory against engines' logs and files", columns, rows),
            Table("Largest errors", ["id", "quantity", "model", "setting", "predicted (GiB)",
                  "measured (GiB)", "error", "role", "why"],
                  [[r.id, r.quantity, r.model, r.setting, f"{r.predicted:.3f}",
                    f"{r.measured:.3f}", f"{r.error:+.1%}", r.role, r.reason] for r in largest]),
            Table("Not judged", ["id", "reason"], refused),
        ],
        lines=[f"{len(found.judged())} rows judged, {len(found.refused)} lines not"],
    )  # fmt: skip


def _shown(value: Any) -> str:
    return f"{value:.2%}" if isinstance(value, float) else str(value)


def beside_answer(found: "Sequence[Beside]", files: "Sequence[str]", accelerator: str) -> Answer:
    """Users' runs beside their predictions."""
    from roofline.units import show

    def words(name: str, value: float) -> str:
        return show(value, "tok/s" if name.endswith("per_s") else "s")

    rows = [
        [each.run.raw_path, each.run.tool, f"{each.batch:.4g}", q.name,
         words(q.name, q.measured), words(q.name, q.bound), words(q.name, float(q.estimate.mid)),
         f"{words(q.name, float(q.estimate.low))} – {words(q.name, float(q.estimate.high))}",
         f"{q.over_estimate:.2f}×", "yes" if q.inside else "no"]
        for each in found
        for q in each.quantities
    ]  # fmt: skip
    definitions = {each.run.tool: each.run.tpot_definition for each in found}
    return Answer(
        command="validate",
        inputs={"what": list(files), "accelerator": accelerator},
        results=[each.to_dict() for each in found],
        tables=[
            Table("Measured beside predicted", ["run", "tool", "running batch", "quantity",
                  "measured", "bound", "estimate", "low – high", "measured/estimate", "inside"],
                  rows)
        ],
        lines=[f"{tool}: TPOT is {what}" for tool, what in definitions.items() if what],
        assumptions=list(dict.fromkeys(line for each in found for line in each.assumptions)),
    )  # fmt: skip


def training_answer(worst: int) -> Answer:
    """Training memory and step time against measured and published rows."""
    from roofline.validation.training import group_errors, judged_training

    rows = judged_training()
    groups = group_errors(rows)
    judged = sorted((row for row in rows if not row.fitted), key=lambda row: -abs(row.error))
    return Answer(
        command="validate",
        inputs={"what": ["training"]},
        results={"groups": [vars(each) for each in groups],
                 "rows": [vars(row) | {"error": row.error} for row in rows]},
        tables=[
            Table("Training against measured and published rows",
                  ["group", "rows", "mean error", "largest", "inside"],
                  [[g.group, g.rows, f"{g.mean:.1%}", f"{g.worst:.1%}",
                    "–" if g.inside is None else f"{g.inside:.0%}"] for g in groups]),
            Table("Largest errors", ["group", "row", "published", "predicted", "unit", "error",
                  "what the source leaves out"],
                  [[r.group, r.name, f"{r.published:.4g}", f"{r.predicted:.4g}", r.unit,
                    f"{r.error:+.1%}", r.assumption] for r in judged[:worst]]),
        ],
        lines=[f"{len(judged)} rows judged, {len(rows) - len(judged)} in a fit"],
    )  # fmt: skip
