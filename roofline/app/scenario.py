"""Scenario: one question as frozen data, and the library's answer to it.

A scenario holds names, numbers and the texts of what was uploaded; it never holds a path, so that
no link and no file can make the app open one.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

from roofline.api.predict import predict
from roofline.api.prediction import Prediction
from roofline.app.fields import ASKED, AUTO, BY_NAME, NONE, OWN, OWN_PREFIX
from roofline.app.uploads import accelerator_of, model_of, record_of
from roofline.errors import InputError, unknown_name
from roofline.hardware.accelerator import Accelerator, load_accelerator
from roofline.hardware.measurement import Measurement, load_measurement, measured_ids
from roofline.models.architecture import Architecture
from roofline.models.catalogue import load_named
from roofline.models.config import load_model
from roofline.models.hub import load_hub
from roofline.models.hub_cache import cached_folder, is_hub_id
from roofline.serving.engines import Engine
from roofline.timing.parallel import Parallel

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True)
class Scenario:
    """What is asked; fields as in ``app.fields``, and the texts of uploads.

    Args:
        config: text of a config.json, when ``model_from`` is upload.
        spec: text of an accelerator's YAML, when ``accelerator`` is one's own.
        record: text of a measured record, when ``machine`` is uploaded.
    """

    model_from: str
    model: str
    hub: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    ffn: int
    vocab: int
    tied: bool
    experts: int
    experts_used: int
    accelerator: str
    tp: int
    pp: int
    dp: int
    ep: int
    network: str
    machine: str
    engine: str
    engine_version: str
    memory_fraction: float | None
    weights: str
    kv: str
    compute: str
    prompt_tokens: int
    output_tokens: int
    batch: int
    usd_per_hour: float | None
    config: str = ""
    spec: str = ""
    record: str = ""

    def architecture(self) -> Architecture:
        """The model.

        Raises:
            RooflineError: no such model, or a config that cannot be.
        """
        match self.model_from:
            case "upload":
                if not self.config:
                    raise InputError("no config.json was uploaded yet; choose one in the sidebar")
                return model_of(self.config)
            case "form":
                return load_model(self.form_config())
            case "hub":
                return hub_model(self.hub)
        return load_named(self.model)

    def form_config(self) -> dict[str, Any]:
        """The custom form as a config."""
        config: dict[str, Any] = {
            "_name_or_path": "custom",
            "model_type": "mixtral" if self.experts else "llama",
            "num_hidden_layers": self.layers,
            "hidden_size": self.hidden,
            "num_attention_heads": self.heads,
            "num_key_value_heads": self.kv_heads,
            "head_dim": self.head_dim,
            "intermediate_size": self.ffn,
            "vocab_size": self.vocab,
            "tie_word_embeddings": self.tied,
            "torch_dtype": "bfloat16",
        }
        if self.experts:
            config |= {
                "num_local_experts": self.experts,
                "num_experts_per_tok": self.experts_used,
            }
        return config

    def device(self) -> Accelerator:
        """The accelerator.

        Raises:
            RooflineError: no such accelerator, or its text does not load.
        """
        if self.spec:
            return accelerator_of(self.spec)
        if self.accelerator not in BY_NAME["accelerator"].options():
            raise unknown_name("accelerator", self.accelerator, BY_NAME["accelerator"].options())
        return load_accelerator(self.accelerator)

    def measurement(self) -> Measurement | None:
        """The measured record that was asked for.

        Raises:
            RooflineError: there is none of this accelerator.
        """
        if self.machine == "uploaded":
            if not self.record:
                raise InputError("no record was uploaded yet; hand one in on the page Measure")
            return record_of(self.record)
        if self.machine == "recorded":
            return load_measurement(self.device().id)
        return None

    def parallel(self) -> Parallel:
        """The plan."""
        return Parallel(tp=self.tp, pp=self.pp, dp=self.dp, ep=self.ep)

    def engine_settings(self) -> Engine:
        """The engine."""
        return Engine(
            self.engine,
            version=self.engine_version or None,
            memory_fraction=self.memory_fraction,
        )

    def formats(self) -> dict[str, str | None]:
        """Formats by the names that ``predict`` has for them."""
        return {
            "weights": None if self.weights == OWN else self.weights,
            "kv": None if self.kv == OWN else self.kv,
        }

    def machine_argument(self) -> "str | Measurement | None":
        """What ``predict`` takes as its machine."""
        return self.device().id if self.machine == "recorded" else self.measurement()

    def settings(self) -> dict[str, Any]:
        """Arguments of ``predict`` besides model and accelerator."""
        return {
            "prompt_tokens": self.prompt_tokens,
            "output_tokens": self.output_tokens,
            "batch": self.batch,
            "parallel": self.parallel(),
            **self.formats(),
            "engine": self.engine_settings(),
            "machine": self.machine_argument(),
            "compute": None if self.compute == AUTO else self.compute,
            "network": None if self.network == NONE else self.network,
            "usd_per_hour": self.usd_per_hour,
        }

    def inputs(self) -> dict[str, Any]:
        """What was asked, under the keys of the command's JSON."""
        given = self.settings()
        parallel = given.pop("parallel")
        given.pop("engine")
        return {
            "model": self.model_word(),
            "accelerator": self.accelerator_word(),
            **{key: given.pop(key) for key in ("prompt_tokens", "output_tokens", "batch")},
            "tp": parallel.tp, "pp": parallel.pp, "dp": parallel.dp, "ep": parallel.ep,
            "weights": given["weights"], "kv": given["kv"], "compute": given["compute"],
            "engine": self.engine, "engine_version": self.engine_version or None,
            "memory_fraction": self.memory_fraction, "machine": self.machine_word(),
            "network": given["network"], "usd_per_hour": self.usd_per_hour,
        }  # fmt: skip

    def model_word(self) -> str:
        """The model as a command names it; what was uploaded by the file it was saved as."""
        match self.model_from:
            case "upload" | "form":
                return "config.json"
            case "hub":
                return self.hub
        return self.model

    def accelerator_word(self) -> str:
        """The accelerator as a command names it."""
        if self.spec:
            return f"{self.accelerator.removeprefix(OWN_PREFIX)}.yaml"
        return self.accelerator

    def machine_word(self) -> str | None:
        """The machine as a command names it."""
        if self.machine == NONE:
            return None
        return "record.json" if self.machine == "uploaded" else self.accelerator_word()

    def model_python(self) -> str:
        """The model as Python has it."""
        return repr(self.form_config()) if self.model_from == "form" else repr(self.model_word())

    def label(self) -> str:
        """A few words that tell two scenarios apart."""
        count = self.tp * self.pp * self.dp
        many = f"{count} × " if count > 1 else ""
        model = {"upload": "own config", "form": "custom"}.get(self.model_from, self.model_word())
        return f"{model} on {many}{self.accelerator_word()}"


def hub_model(model_id: str) -> Architecture:
    """A model by its hub id: from the local cache or the catalogue, never from the network.

    Raises:
        UnknownNameError: it is in neither.

    >>> hub_model("Qwen/Qwen3-8B").name
    'qwen3-8b'
    """
    if is_hub_id(model_id) and cached_folder(model_id) is not None:
        return load_hub(model_id, offline=True)
    return load_named(model_id)


def remembered(
    size: int,
) -> Callable[[Callable[Concatenate[Scenario, P], T]], Callable[Concatenate[Scenario, P], T]]:
    """Answer the same question once; what was uploaded is not kept, so that memory is bounded."""

    def wrap(ask: Callable[Concatenate[Scenario, P], T]) -> Callable[Concatenate[Scenario, P], T]:
        cached: Callable[..., T] = lru_cache(maxsize=size)(ask)

        @wraps(ask)
        def answer(scenario: Scenario, /, *args: P.args, **kwargs: P.kwargs) -> T:
            if scenario.config or scenario.spec or scenario.record:
                return ask(scenario, *args, **kwargs)
            return cached(scenario, *args, **kwargs)

        return answer

    return wrap


@remembered(256)
def predicted(scenario: Scenario) -> Prediction:
    """Ask the library; the same question is answered once.

    Raises:
        RooflineError: the question cannot be answered; the message says why.
    """
    return predict(scenario.architecture(), scenario.device(), **scenario.settings())


def scenario_of(values: Mapping[str, Any], **texts: str) -> Scenario:
    """Make a scenario of checked values; what is missing takes its default.

    >>> scenario_of({"batch": 8}).label()
    'llama-3.1-8b on h200-sxm-141gb'
    """
    given: dict[str, Any] = {field.name: values.get(field.name, field.default) for field in ASKED}
    return Scenario(**{**given, **texts})


def has_record(scenario: Scenario) -> bool:
    """Whether a measured record of the accelerator is there."""
    return scenario.device().id in measured_ids()


def config_file(scenario: Scenario) -> str:
    """The model's config.json, where it is one's own."""
    if scenario.model_from == "form":
        return json.dumps(scenario.form_config(), indent=1) + "\n"
    return scenario.config if scenario.model_from == "upload" else ""
