"""Questions of single pages: what they ask besides the scenario, as Python and command line.

A question is a scenario and the values of a page's fields; the library's answer to it is kept, so
that moving between pages asks nothing twice.
"""

import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from roofline.api.compare import compare
from roofline.api.comparison import Comparison
from roofline.api.plan import plan
from roofline.api.plan_result import Plan
from roofline.api.train import train
from roofline.api.training_result import Training
from roofline.app.fields import AUTO, BY_NAME, NONE
from roofline.app.scenario import Scenario, remembered
from roofline.serving.traffic import Slo, Traffic, Workload
from roofline.timing.parallel import Parallel

Values = tuple[tuple[str, Any], ...]
"""A page's fields with their values, so that they can be looked up."""


def frozen(values: Mapping[str, Any]) -> Values:
    """Make values that can be kept: lists become tuples.

    >>> frozen({"against": ["t4"]})
    (('against', ('t4',)),)
    """
    return tuple((name, tuple(value) if isinstance(value, list) else value)
                 for name, value in values.items())  # fmt: skip


def machines(scenario: Scenario) -> dict[str, Any]:
    """The measured record by its accelerator, as plans and comparisons take it."""
    given = scenario.machine_argument()
    return {} if given is None else {scenario.device().id: given}


@remembered(32)
def planned(scenario: Scenario, values: Values) -> Plan:
    """Ask for a plan.

    Raises:
        RooflineError: the question cannot be answered.
    """
    given = dict(values)
    formats = scenario.formats()
    return plan(
        scenario.architecture(),
        Traffic(
            requests_per_s=given["requests_per_s"],
            prompt_tokens=scenario.prompt_tokens,
            output_tokens=scenario.output_tokens,
            prefix_share=given["prefix_share"],
            peak_factor=given["peak_factor"],
            growth=given["growth"],
        ),
        Slo(
            ttft_s=given["ttft_s"],
            tpot_s=given["tpot_s"],
            percentile=given["percentile"],
            spare_replicas=given["spare_replicas"],
        ),
        list(given["candidates"]) or None,
        weights=formats["weights"],
        kv=formats["kv"],
        engine=given["served_by"],
        machine=machines(scenario) or None,
        network=None if scenario.network == NONE else scenario.network,
        term=given["term"],
        times=given["times"],
        disaggregate=given["disaggregate"],
    )


def plan_python(scenario: Scenario, values: Values) -> str:
    """The plan's question in Python."""
    given = dict(values)
    traffic = {name: given[name] for name in ("requests_per_s", "prefix_share", "peak_factor",
                                              "growth")}  # fmt: skip
    traffic |= {"prompt_tokens": scenario.prompt_tokens, "output_tokens": scenario.output_tokens}
    slo = {name: given[name] for name in ("ttft_s", "tpot_s", "percentile", "spare_replicas")}
    words = [
        scenario.model_python(),
        f"Traffic({_arguments(traffic)})",
        f"Slo({_arguments(slo)})",
        repr(list(given["candidates"]) or None),
        *_format_words(scenario),
        f"engine={given['served_by']!r}",
        *_machine_words(scenario),
        *([] if scenario.network == NONE else [f"network={scenario.network!r}"]),
        _arguments({name: given[name] for name in ("term", "times", "disaggregate")}),
    ]
    return (
        "from roofline.api.plan import plan\n"
        "from roofline.serving.traffic import Slo, Traffic\n\n"
        f"plan({', '.join(words)})"
    )


def plan_command(scenario: Scenario, values: Values) -> str:
    """The plan's question for a shell."""
    given = dict(values)
    words = ["roofline", "plan", scenario.model_word(), *given["candidates"]]
    words += ["--prompt-tokens", str(scenario.prompt_tokens)]
    words += ["--output-tokens", str(scenario.output_tokens), "--engine", given["served_by"]]
    words += _flags(given, ("requests_per_s", "prefix_share", "peak_factor", "growth", "ttft_s",
                            "tpot_s", "percentile", "spare_replicas", "term", "times"),
                    always=("requests_per_s", "ttft_s", "tpot_s"))  # fmt: skip
    words += _format_flags(scenario) + _machine_flags(scenario)
    words += [] if scenario.network == NONE else ["--network", scenario.network]
    words += ["--disaggregate"] if given["disaggregate"] else []
    return shlex.join(words)


@remembered(64)
def compared(scenario: Scenario, values: Values) -> Comparison:
    """Ask for a comparison.

    Raises:
        RooflineError: the question cannot be answered.
    """
    given = dict(values)
    formats = scenario.formats()
    return compare(
        scenario.architecture(),
        Workload(scenario.prompt_tokens, scenario.output_tokens, batch=scenario.batch),
        list(given["against"]) or None,
        scenario=given["scenario"],
        sort=None if given["sort"] == AUTO else given["sort"],
        parallel=_own_plan(scenario),
        weights=formats["weights"],
        kv=formats["kv"],
        engine=given["served_by"],
        machine=machines(scenario) or None,
        term=given["term"],
    )


def _own_plan(scenario: Scenario) -> Parallel | None:
    """The scenario's plan; None, the fewest that hold the workload, for one accelerator."""
    if scenario.tp == scenario.pp == 1:
        return None
    return Parallel(tp=scenario.tp, pp=scenario.pp)


def compare_python(scenario: Scenario, values: Values) -> str:
    """The comparison's question in Python."""
    given = dict(values)
    words = [
        scenario.model_python(),
        f"Workload({scenario.prompt_tokens}, {scenario.output_tokens}, batch={scenario.batch})",
        repr(list(given["against"]) or None),
        f"scenario={given['scenario']!r}",
        *([] if given["sort"] == AUTO else [f"sort={given['sort']!r}"]),
        *([] if _own_plan(scenario) is None else
          [f"parallel=roofline.Parallel(tp={scenario.tp}, pp={scenario.pp})"]),
        *_format_words(scenario),
        f"engine={given['served_by']!r}",
        *_machine_words(scenario),
        f"term={given['term']!r}",
    ]  # fmt: skip
    return (
        "import roofline\nfrom roofline.api.compare import compare\n"
        "from roofline.serving.traffic import Workload\n\n"
        f"compare({', '.join(words)})"
    )


def compare_command(scenario: Scenario, values: Values) -> str:
    """The comparison's question for a shell."""
    given = dict(values)
    words = ["roofline", "compare", scenario.model_word(), *given["against"]]
    words += ["--prompt-tokens", str(scenario.prompt_tokens)]
    words += ["--output-tokens", str(scenario.output_tokens), "--batch", str(scenario.batch)]
    words += ["--scenario", given["scenario"], "--engine", given["served_by"]]
    words += _flags(given, ("term",))
    words += [] if given["sort"] == AUTO else ["--sort", given["sort"]]
    if _own_plan(scenario) is not None:
        words += ["--tp", str(scenario.tp), "--pp", str(scenario.pp)]
    words += _format_flags(scenario) + _machine_flags(scenario)
    return shlex.join(words)


@remembered(128)
def trained(scenario: Scenario, values: Values) -> Training:
    """Ask for a training run.

    Raises:
        RooflineError: the question cannot be answered.
    """
    return train(
        scenario.architecture(), scenario.device(), machine=scenario.machine_argument(),
        **training_settings(scenario, dict(values)),
    )  # fmt: skip


def training_settings(scenario: Scenario, given: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of ``train``, without those that were not given."""
    settings = {
        "mode": None if given["mode"] == AUTO else given["mode"],
        "recompute": given["recompute"],
        "global_batch": given["global_batch"],
        "tokens": given["tokens"],
        "network": None if scenario.network == NONE else scenario.network,
        # a price says nothing without the length of the run
        "usd_per_hour": scenario.usd_per_hour if given["tokens"] else None,
        "optimiser": given["optimiser"],
        "sequence_tokens": given["sequence_tokens"],
        "micro_batch": given["micro_batch"],
        "zero_stage": given["zero_stage"],
        "tp": scenario.tp, "pp": scenario.pp, "dp": scenario.dp, "ep": scenario.ep,
    }  # fmt: skip
    return {name: value for name, value in settings.items() if value is not None}


def train_python(scenario: Scenario, values: Values) -> str:
    """The training run's question in Python."""
    words = [scenario.model_python(), repr(scenario.accelerator_word())]
    words.append(_arguments(training_settings(scenario, dict(values))))
    if scenario.machine_word():
        words.append(f"machine={scenario.machine_word()!r}")
    return f"roofline.train({', '.join(words)})"


def train_command(scenario: Scenario, values: Values) -> str:
    """The training run's question for a shell."""
    words = ["roofline", "train", scenario.model_word(), scenario.accelerator_word()]
    for name, value in training_settings(scenario, dict(values)).items():
        words += [f"--{name.replace('_', '-')}", _number(value)]
    return shlex.join(words + _machine_flags(scenario, by_id=False))


def _arguments(given: Mapping[str, Any]) -> str:
    return ", ".join(f"{name}={value!r}" for name, value in given.items())


def _flags(given: Mapping[str, Any], names: Sequence[str], always: Sequence[str] = ()) -> list[str]:
    """Flags of fields; those at their default only where the command's default differs."""
    flags: list[str] = []
    for name in names:
        if name in always or given[name] != BY_NAME[name].default:
            flags += [f"--{name.replace('_', '-')}", _number(given[name])]
    return flags


def _number(value: Any) -> str:
    return repr(value) if isinstance(value, float) else str(value)


def _format_words(scenario: Scenario) -> list[str]:
    return [f"{name}={value!r}" for name, value in scenario.formats().items() if value]


def _format_flags(scenario: Scenario) -> list[str]:
    return [word for name, value in scenario.formats().items() if value
            for word in (f"--{name}", value)]  # fmt: skip


def _machine_words(scenario: Scenario) -> list[str]:
    word = scenario.machine_word()
    return [] if word is None else [f"machine={{{scenario.accelerator_word()!r}: {word!r}}}"]


def _machine_flags(scenario: Scenario, *, by_id: bool = True) -> list[str]:
    word = scenario.machine_word()
    if word is None:
        return []
    return ["--machine", f"{scenario.accelerator_word()}={word}" if by_id else word]
