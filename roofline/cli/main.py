"""The command ``roofline``: one verb per question.

A verb's module is imported when it is asked for, so that ``roofline predict`` starts fast. Exit
codes: 0 done, 1 error, 2 usage, 3 does not fit or misses the target.
"""

import gc
import importlib
import os
import sys
from collections.abc import Sequence
from typing import cast

import typer

from roofline.errors import RooflineError

VERBS = {
    "sweep": "whole spaces of configurations: the best, the front, the winners",
    "report": "theory, estimate and measurement of a model on a machine, on one page",
    "calibrate": "terms of a machine from its measured record, and how well they fit",
    "predict": "bounds, estimate, memory and fit of a model on an accelerator",
    "plan": "how many of which accelerator carry a load within its targets, at what cost",
    "compare": "accelerators for one workload: fit, estimate, nominal and effective cost",
    "prices": "price tables: list, check, import",
    "fit": "where a model fits, how much of it, and why not elsewhere",
    "validate": "predictions against measurements: errors, exclusions, bounds, worst rows",
    "measure": "this machine's own roofs and models, measured into a record",
    "trace": "what a profiler trace says: busy share, gaps and causes, kernels",
    "topology": "links of a node, what is broken, and which ranks go where",
    "baseline": "a node's health recorded, compared with itself and its fleet",
    "diagnose": "why a run is slow, with evidence and the next step",
    "specs": "accelerators and links: list, show with sources, check your own files",
    "models": "models of the catalogue and yours: list, show",
    "app": "all of this in a browser, on this machine alone",
    "train": "memory, step time, utilisation, days and cost of a training run",
}
"""Verb to what it answers; each lives in ``roofline.cli.<verb>`` and has ``register(app)``."""


CLICK_ERROR = cast(type[Exception], typer.BadParameter.__mro__[2])
"""click's ClickException: typer vendors click, or depends on it, by version."""


def build_app(verbs: Sequence[str]) -> typer.Typer:
    """Make the command with these verbs."""
    app = typer.Typer(
        name="roofline",
        help="What a language model can, will and does do on an accelerator, and why.",
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        rich_markup_mode=None,
        context_settings={"help_option_names": ["-h", "--help"]},
    )

    def show_version(asked: bool) -> None:
        if asked:
            from importlib.metadata import version

            print(f"roofline {version('roofline')}")
            raise typer.Exit

    @app.callback()
    def root(
        version: bool = typer.Option(
            False, "--version", callback=show_version, is_eager=True, help="Show the version."
        ),
    ) -> None:
        """What a language model can, will and does do on an accelerator, and why."""

    for verb in verbs:
        importlib.import_module(f"roofline.cli.{verb}").register(app)
    return app


def run(arguments: Sequence[str]) -> int:
    """Run one command line and return its exit code; every error is one line on stderr."""
    asked = next((word for word in arguments if not word.startswith("-")), None)
    app = build_app([asked] if asked in VERBS else list(VERBS))
    try:
        code = typer.main.get_command(app).main(
            list(arguments), prog_name="roofline", standalone_mode=False
        )
        sys.stdout.flush()
    except RooflineError as error:
        print(f"error: {_one_line(error)}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # the reader of our output has gone (``| head``): nothing is wrong
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    except CLICK_ERROR as error:
        return _usage_error(error)
    except typer.Abort:
        print("interrupted", file=sys.stderr)
        return 130
    return code if isinstance(code, int) else 0


def _usage_error(error: Exception) -> int:
    message = error.format_message() if hasattr(error, "format_message") else str(error)
    if not message.strip():  # help was asked for by giving no arguments; it has been printed
        return 2
    if type(error).__name__ == "NoArgsIsHelpError":
        print(message)
        return 2
    print(f"error: {_one_line(message)} (see roofline --help)", file=sys.stderr)
    return 2


def _one_line(error: object) -> str:
    return " ".join(str(error).split())


def main() -> None:
    """Entry point of the console script."""
    gc.set_threshold(100_000)  # imports make hundreds of thousands of objects that all stay
    sys.exit(run(sys.argv[1:]))
