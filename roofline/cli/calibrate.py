"""``roofline calibrate``: terms of a machine from its measured record, and how well they fit."""

from pathlib import Path
from typing import Annotated

import typer

from roofline.cli.output import Answer, Format, FormatOption, OutputOption, Table, emit


def register(app: typer.Typer) -> None:
    """Add the verb."""
    app.command("calibrate")(calibrate_command)


def calibrate_command(
    record: Annotated[str, typer.Argument(help="Measured record (file), or a spec id.")],
    accelerator: Annotated[
        str | None, typer.Option(help="Spec of the device, where the record names none.")
    ] = None,
    save: Annotated[
        Path | None, typer.Option(help="Write the calibration file here, for --machine.")
    ] = None,
    form: FormatOption = Format.TABLE,
    output: OutputOption = None,
) -> None:
    """Fit kernel start, roofs, ridge softness and links to a record, and judge the fit."""
    from roofline.calibration.store import write_calibration
    from roofline.validation.fitting.machine import calibrate

    calibration = calibrate(record, accelerator)
    rows = [
        [what, count, f"{mean:.1%}", f"{worst:.1%}", words]
        for what, count, mean, worst, words in calibration.residuals
    ]
    engine = calibration.engines["cuda-graph"]
    answer = Answer(
        command="calibrate",
        inputs={"record": record, "accelerator": accelerator},
        results=calibration.__dict__
        | {
            "device": vars(calibration.device) if calibration.device else None,
            "engines": {name: vars(fit) for name, fit in calibration.engines.items()},
        },
        tables=[
            Table("Fits and judged rows", ["what", "rows", "mean", "p90 or worst", "numbers"], rows)
        ],
        lines=[
            f"{calibration.spec_id}: {calibration.origin}",
            f"fitted on {engine.fitted_on}; judged on {engine.judged_on}",
        ],
    )
    emit(answer, form, output)
    if save is not None:
        typer.echo(f"wrote {write_calibration(calibration, save)}", err=True)
