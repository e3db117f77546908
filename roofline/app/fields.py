"""Fields: everything that a page asks, declared once for the page, its address and its file.

A field's name is its key in the address bar and in a saved scenario; the second of two scenarios
side by side has the suffix ``_b``. Options are stable ids, so that a link means the same tomorrow.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from roofline.api.compare import SCENARIOS, SORTS
from roofline.api.plan import CONTINUOUS
from roofline.api.predict import DEFAULT_OUTPUT_TOKENS, DEFAULT_PROMPT_TOKENS, LARGEST_COUNT
from roofline.api.train import MODES
from roofline.dtypes import COMPUTE_TYPES, DTYPES
from roofline.economics.price_row import TERMS
from roofline.errors import SpecError, unknown_name
from roofline.hardware.accelerator import accelerator_ids
from roofline.hardware.links import link_names
from roofline.hardware.measurement import measured_ids
from roofline.models.catalogue import model_names
from roofline.serving.engines import ENGINE_NAMES
from roofline.validation.datasets import DATASETS

Kind = Literal["choice", "choices", "whole", "number", "text", "yes"]
OWN = "own"
"""The checkpoint's own format."""
AUTO = "auto"
NONE = "none"
MODEL_SOURCES = ("catalogue", "hub", "upload", "form")
MACHINES = (NONE, "recorded", "uploaded")
OWN_PREFIX = "own/"
"""What the id of an accelerator that was added in this session begins with."""
LONGEST_TEXT = 200


@dataclass(frozen=True)
class Field:
    """One thing that is asked.

    Args:
        name: key in the address and in a file.
        label, help: for the reader.
        kind: choice (one of ``options``), choices (several), whole, number, text, yes.
        default: its value until somebody changes it; None: nothing given.
        options: gives the choices.
        least, most: of a number.
    """

    name: str
    label: str
    kind: Kind
    default: Any = None
    options: Callable[[], Sequence[str]] = tuple
    least: float | None = None
    most: float | None = None
    help: str = ""

    def checked(self, value: Any) -> Any:
        """Take a value from outside, or refuse it.

        Raises:
            SpecError: another kind of value, or one out of its limits.
            UnknownNameError: no such choice.

        >>> BY_NAME["batch"].checked(32)
        32
        >>> BY_NAME["batch"].checked(True)
        Traceback (most recent call last):
        ...
        roofline.errors.SpecError: batch: a whole number from 1 to 2,147,483,648, got True
        """
        if value is None and self.default is None:
            return None
        match self.kind:
            case "yes":
                good = isinstance(value, bool)
            case "choice":
                return self._choice(value)
            case "choices":
                if not isinstance(value, list | tuple):
                    raise SpecError(f"{self.name}: a list, got {_shown(value)}")
                return [self._choice(one) for one in value]
            case "whole":
                good = isinstance(value, int) and not isinstance(value, bool)
            case "number":
                good = isinstance(value, int | float) and not isinstance(value, bool)
            case "text":
                good = isinstance(value, str) and len(value) <= LONGEST_TEXT
        if good and self.kind in ("whole", "number"):
            good = not (self.least is not None and value < self.least)
            good = good and not (self.most is not None and value > self.most)
        if not good:
            raise SpecError(f"{self.name}: {self._wanted()}, got {_shown(value)}")
        return float(value) if self.kind == "number" else value

    def _choice(self, value: Any) -> str:
        known = list(self.options())
        if not isinstance(value, str) or value not in known:
            raise unknown_name(self.name, str(value), known)
        return value

    def _wanted(self) -> str:
        words = {
            "yes": "true or false", "whole": "a whole number", "number": "a number",
            "text": f"text of at most {LONGEST_TEXT} characters",
        }  # fmt: skip
        limits = ""
        if self.least is not None and self.most is not None:
            limits = f" from {self.least:,g} to {self.most:,.0f}"
        elif self.least is not None:
            limits = f" of at least {self.least:,g}"
        return words[self.kind] + limits


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."


def _formats() -> Sequence[str]:
    return (OWN, *DTYPES)


def _count(name: str, label: str, default: int = 1, words: str = "") -> Field:
    return Field(name, label, "whole", default, least=1, most=LARGEST_COUNT, help=words)


def _devices() -> Sequence[str]:
    """Accelerators with a spec, then machines that are known by their record alone."""
    specs = accelerator_ids()
    return (*specs, *(name for name in measured_ids() if name not in specs))


MODEL = (
    Field("model_from", "Model from", "choice", "catalogue", lambda: MODEL_SOURCES),
    Field("model", "Model", "choice", "llama-3.1-8b", model_names,
          help="The catalogue. Its dimensions come from each model's public config.json."),
    Field("hub", "Hugging Face id", "text", "meta-llama/Llama-3.1-8B-Instruct",
          help="Looked up in your cache and the catalogue; asked of the hub by a button alone."),
    _count("layers", "Layers", 32),
    _count("hidden", "Width", 4096),
    _count("heads", "Query heads", 32),
    _count("kv_heads", "KV heads", 8),
    _count("head_dim", "Head size", 128),
    _count("ffn", "Feed-forward width", 14336, "Of one expert, where there are experts."),
    _count("vocab", "Vocabulary", 128256),
    Field("tied", "lm_head tied to the embedding", "yes", False),
    Field("experts", "Experts (0: dense)", "whole", 0, least=0, most=65536),
    _count("experts_used", "Experts of a token", 2),
)  # fmt: skip
HARDWARE = (
    Field("accelerator", "Accelerator", "choice", "h200-sxm-141gb", _devices),
    _count("tp", "TP", words="Tensor-parallel ranks."),
    _count("pp", "PP", words="Pipeline stages."),
    _count("dp", "DP", words="Data-parallel replicas."),
    _count("ep", "EP", words="Expert-parallel ranks: they partition tp · dp."),
    Field("network", "Link between nodes", "choice", NONE, lambda: (NONE, *link_names())),
    Field("machine", "Machine", "choice", NONE, lambda: MACHINES,
          help="A measured record replaces the datasheet's roofs in estimates, never in bounds."),
)  # fmt: skip
SETTINGS = (
    Field("engine", "Engine", "choice", "ideal", lambda: ENGINE_NAMES,
          help="ideal assumes none: weights and cache alone, and no coverage is claimed."),
    Field("engine_version", "Engine version", "text", ""),
    Field("memory_fraction", "Engine's memory fraction", "number", None, least=0.01, most=1),
    Field("weights", "Weights", "choice", OWN, _formats, help="own: as the checkpoint has them."),
    Field("kv", "KV cache", "choice", OWN, _formats),
    Field("compute", "Compute type", "choice", AUTO, lambda: (AUTO, *COMPUTE_TYPES)),
    _count("prompt_tokens", "Prompt tokens", DEFAULT_PROMPT_TOKENS),
    _count("output_tokens", "Output tokens", DEFAULT_OUTPUT_TOKENS),
    _count("batch", "Batch (sequences of a replica)", 32),
    Field("usd_per_hour", "USD per accelerator-hour", "number", None, least=0.0001, most=10**6),
)  # fmt: skip
PLAN = (
    Field("requests_per_s", "Requests per second", "number", 20.0, least=0.0001, most=10**6),
    Field("peak_factor", "Peak over mean", "number", 1.0, least=1, most=100),
    Field("growth", "Growth (0.3: 30 % more)", "number", 0.0, least=0, most=1000),
    Field("prefix_share", "Share of prompts found cached", "number", 0.0, least=0, most=0.99),
    Field("ttft_s", "TTFT target (s)", "number", 1.0, least=0.0001, most=3600),
    Field("tpot_s", "TPOT target (s)", "number", 0.04, least=0.0001, most=60),
    Field("percentile", "Percentile", "number", 95.0, least=1, most=99.9),
    Field("spare_replicas", "Spare replicas", "whole", 0, least=0, most=1000),
    Field("candidates", "Accelerators to try (none: the whole catalogue)", "choices",
          ["h200-sxm-141gb", "h100-sxm5-80gb", "b200-hgx", "l40s"], accelerator_ids),
    Field("term", "Prices", "choice", "on_demand", lambda: TERMS),
    Field("times", "Plan with the estimates' end", "choice", "mid", lambda: ("low", "mid", "high")),
    Field("disaggregate", "Prefill and decode apart, too", "yes", False),
)  # fmt: skip
SERVED_BY = Field("served_by", "Served by", "choice", "vllm", lambda: CONTINUOUS,
                  help="Engines with continuous batching, of plans and comparisons.")  # fmt: skip
COMPARE = (
    Field("against", "Accelerators to compare", "choices",
          ["h200-sxm-141gb", "h100-sxm5-80gb", "b200-hgx", "mi300x", "l40s"],
          accelerator_ids),
    Field("scenario", "For", "choice", "serving", lambda: SCENARIOS),
    Field("sort", "Sort by", "choice", AUTO, lambda: (AUTO, *SORTS)),
)  # fmt: skip
TRAINING = (
    Field("mode", "Mode", "choice", AUTO, lambda: (AUTO, *MODES)),
    _count("sequence_tokens", "Tokens of a sequence", 2048),
    _count("micro_batch", "Sequences at a time", 1),
    Field("recompute", "Recompute", "choice", "none", lambda: ("none", "selective", "full")),
    Field("optimiser", "Optimiser", "choice", "adam",
          lambda: ("adam", "adam8bit", "adafactor", "sgd", "momentum", "muon")),
    Field("zero_stage", "ZeRO stage", "whole", 0, least=0, most=3),
    Field("global_batch", "Sequences of a step", "whole", None, least=1, most=LARGEST_COUNT),
    Field("tokens", "Tokens of the whole run", "number", None, least=1, most=10**18),
)  # fmt: skip
ALL = "all"
ACCURACY = (
    Field("data", "Data", "choice", ALL, lambda: (ALL, *DATASETS)),
    Field("of_engine", "Engine", "choice", ALL, lambda: (ALL, *ENGINE_NAMES)),
    Field("on", "Accelerator", "choice", ALL, lambda: (ALL, *accelerator_ids())),
)
ASKED = (*MODEL, *HARDWARE, *SETTINGS)
"""What a scenario is, on every page."""
ON_PAGES = (SERVED_BY, *PLAN, *COMPARE, *TRAINING, *ACCURACY)
"""What single pages ask besides."""
BY_NAME = {field.name: field for field in (*ASKED, *ON_PAGES)}
