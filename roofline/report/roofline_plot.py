"""The roofline as a figure: roofs, ridge points, and the steps of a prediction on them.

Shapes   Both axes are logarithmic; the x axis is FLOP per byte, the y axis FLOP per second.
Units    FLOP/B, TFLOP/s.
Limits   A step's height is its FLOPs over its time: at the bound it lies on the roof, at the
         estimate below it.
Sources  [1] Williams, Waterman, Patterson 2009, Roofline, CACM 52(4), figure 1.
"""

from typing import TYPE_CHECKING

import numpy as np

from roofline.timing.roofs import Roofs
from roofline.units import number, show

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from roofline.api.prediction import Prediction

_COLOURS = {"roof": "#1f4e79", "other": "#9aa5b1", "prefill": "#b5482a", "decode": "#2a7f62"}


def roofline_figure(prediction: "Prediction") -> "Figure":
    """Draw the roofs of a prediction's accelerator with its prefill and decode steps."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5.2), layout="constrained")
    axes = figure.add_subplot()
    roofs, used = prediction.deployment.roofs, prediction.deployment.compute_used
    steps = {"prefill": prediction.prefill, "decode": prediction.decode}
    intensities = [step.intensity_flop_per_byte for step in steps.values()]
    ridge = roofs.ridge_flop_per_byte(used)
    low = min(*intensities, ridge) / 8
    high = max(*intensities, ridge) * 8
    x = np.geomspace(low, high, 400)
    drawn = [kind for kind in roofs.flop_per_s if kind in ("bf16", "fp16", "fp8", "fp4", used)]
    for kind in distinct_roofs(drawn, roofs, used):
        main = kind == used
        axes.plot(
            x,
            np.asarray(roofs.attainable_flop_per_s(x, kind)) / 1e12,
            color=_COLOURS["roof" if main else "other"],
            linewidth=2.2 if main else 1.2,
            linestyle="-" if main else "--",
            label=f"{kind} roof, {show(roofs.flop_per_s[kind], 'FLOP/s')}",
        )
    peak = roofs.flop_per_s[used] / 1e12
    axes.plot([ridge], [peak], marker="s", color=_COLOURS["roof"], linestyle="none")
    axes.annotate(
        f"ridge {number(ridge)} FLOP/B",
        (ridge, peak),
        textcoords="offset points",
        xytext=(-8, 6),
        ha="right",
        color=_COLOURS["roof"],
    )
    for name, marker in (("prefill", "o"), ("decode", "^")):
        _step_points(axes, steps[name], name, marker)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_ylim(top=max(roofs.flop_per_s[kind] for kind in drawn) / 1e12 * 3)
    axes.set_xlabel("arithmetic intensity, FLOP per byte that must move")
    axes.set_ylabel("TFLOP/s of one accelerator")
    d = prediction.deployment
    axes.set_title(
        f"{d.arch.name} ({d.weights_dtype}) on {d.accelerator.name}\n"
        f"batch {prediction.batch:,}, prompt {prediction.prompt_tokens:,}, "
        f"output {prediction.output_tokens:,}, {d.parallel}; {roofs.origin} roofs",
        fontsize=10,
    )
    axes.grid(visible=True, which="major", color="#dddddd", linewidth=0.6)
    axes.legend(loc="lower right", fontsize=8, framealpha=0.95)
    return figure


def distinct_roofs(kinds: list[str], roofs: Roofs, used: str) -> list[str]:
    """Leave out types whose roof another one hides, the used type never."""
    seen = {roofs.flop_per_s[used]}
    kept = [used]
    for kind in kinds:
        if roofs.flop_per_s[kind] not in seen:
            seen.add(roofs.flop_per_s[kind])
            kept.append(kind)
    return kept


def _step_points(axes: "object", step: "object", name: str, marker: str) -> None:
    from roofline.api.step_time import StepTime

    if not isinstance(step, StepTime):
        return
    x = step.intensity_flop_per_byte
    bound, middle = step.flop / step.bound_s / 1e12, step.flop / float(step.estimate_s.mid) / 1e12
    low, high = (
        step.flop / float(end) / 1e12 for end in (step.estimate_s.high, step.estimate_s.low)
    )
    colour = _COLOURS[name]
    axes.plot(  # type: ignore[attr-defined]
        [x], [bound], marker=marker, markerfacecolor="none", markersize=9, color=colour,
        linestyle="none", label=f"{name} bound, {show(step.bound_s, 's')} ({step.limited_by})",
    )  # fmt: skip
    axes.errorbar(  # type: ignore[attr-defined]
        [x], [middle], yerr=[[middle - low], [high - middle]], marker=marker, markersize=8,
        color=colour, linestyle="none", capsize=4,
        label=f"{name} estimate, {show(float(step.estimate_s.mid), 's')}",
    )  # fmt: skip
