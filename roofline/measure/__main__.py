"""``python -m roofline.measure``: the measurements without the rest of the command line.

python -m roofline.measure machine --level full --output-dir DIR
python -m roofline.measure models llama-3.1-8b qwen2.5-7b --formats bf16 --output-dir DIR
torchrun --nproc-per-node 2 -m roofline.measure collectives --output-dir DIR
"""

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from roofline.errors import RooflineError
from roofline.hardware.measurement import Measurement
from roofline.measure.case import Level
from roofline.measure.collectives import OPS, measure_collectives
from roofline.measure.device import find_target
from roofline.measure.model_run import MODES, ModelPlan
from roofline.measure.model_session import measure_models
from roofline.measure.ranks import joined
from roofline.measure.session import measure, summary, to_stderr


def numbers(text: str) -> tuple[int, ...]:
    """Read ``1,2,4`` as whole numbers; empty text is none."""
    return tuple(int(part) for part in text.split(",") if part)


def parser() -> argparse.ArgumentParser:
    """The command line."""
    made = argparse.ArgumentParser(prog="python -m roofline.measure")
    verbs = made.add_subparsers(dest="verb", required=True)
    machine = verbs.add_parser("machine")
    machine.add_argument("--level", default="standard", choices=[level.value for level in Level])
    machine.add_argument("--sections", default="")
    machine.add_argument("--resume", action="store_true")
    models = verbs.add_parser("models")
    models.add_argument("models", nargs="+")
    models.add_argument("--formats", default="bf16")
    models.add_argument("--batches", type=numbers, default=(1, 2, 4, 8, 16, 32, 64, 128))
    models.add_argument("--contexts", type=numbers, default=(256, 2048))
    models.add_argument("--prompts", type=numbers, default=(128, 512, 2048))
    models.add_argument("--prompt-batches", type=numbers, default=(1,))
    models.add_argument("--modes", default="graph", help=", ".join(MODES))
    models.add_argument("--transformers", action="store_true")
    collectives = verbs.add_parser("collectives")
    collectives.add_argument("--largest", type=int, default=2**30)
    collectives.add_argument("--ops", default=",".join(OPS))
    collectives.add_argument("--step", type=int, default=2)
    for verb in (machine, models, collectives):
        verb.add_argument("--device", default="")
        verb.add_argument("--output-dir", type=Path, default=Path("measurements"))
        verb.add_argument("--limit-s", type=float, default=float("inf"))
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line; gives the exit code."""
    asked = parser().parse_args(arguments)
    try:
        return _run(asked)
    except RooflineError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _run(asked: argparse.Namespace) -> int:
    if asked.verb == "collectives":
        measure_collectives(
            largest=asked.largest, device=asked.device, folder=asked.output_dir,
            ops=asked.ops.split(","), step=asked.step,
        )  # fmt: skip
        return 0
    if asked.verb == "models":
        return _models(asked)
    record, path = measure(
        find_target(asked.device), Level(asked.level),
        sections=[section for section in asked.sections.split(",") if section],
        folder=asked.output_dir, resume=asked.resume, report=to_stderr,
        command=f"roofline measure --{asked.level}", limit_s=asked.limit_s,
    )  # fmt: skip
    for name, value in summary(record):
        print(f"{name:32} {value}")
    return _close(record, path)


def _models(asked: argparse.Namespace) -> int:
    plan = ModelPlan(
        batches=asked.batches, contexts=asked.contexts, prompts=asked.prompts,
        prompt_batches=asked.prompt_batches, modes=tuple(asked.modes.split(",")),
    )  # fmt: skip
    with joined(asked.device) as ranks:
        target = find_target(asked.device if ranks.count == 1 else str(ranks.device))
        record, path = measure_models(
            target, asked.models, plan, formats=asked.formats.split(","),
            with_transformers=asked.transformers, folder=asked.output_dir, report=to_stderr,
            command=f"roofline measure model {' '.join(asked.models)} --formats {asked.formats}",
            limit_s=asked.limit_s, ranks=ranks,
        )  # fmt: skip
        if not ranks.is_first:
            return 0
    for row in record.decoder_rows:
        print(
            f"{row.model} {row.weights} tp {row.tp} {row.mode} {row.phase} batch {row.batch} "
            f"tokens {row.context_tokens}: {row.median_s:.6g} s"
        )
    return _close(record, path)


def _close(record: Measurement, path: Path | None) -> int:
    for label, text in record.errors.items():
        print(f"failed: {label}: {text}", file=sys.stderr)
    print(path or "not written", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
