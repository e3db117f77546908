"""Copies: a scenario's question as the Python line and the command that ask the same."""

import shlex

from roofline.app.fields import BY_NAME
from roofline.app.scenario import Scenario


def predict_flags(scenario: Scenario) -> list[str]:
    """The command's flags, without those that say the default."""
    flags: list[str] = []
    silent = {"tp": 1, "pp": 1, "dp": 1, "ep": 1, "engine": "ideal", "batch": 1}
    for name, value in scenario.inputs().items():
        if name in ("model", "accelerator") or value is None or silent.get(name) == value:
            continue
        flags += [f"--{name.replace('_', '-')}", str(value)]
    return flags


def command_line(scenario: Scenario, verb: str = "predict") -> str:
    """The same question for a shell.

    >>> from roofline.app.scenario import scenario_of
    >>> command_line(scenario_of({"batch": 8, "tp": 2}))
    'roofline predict llama-3.1-8b h200-sxm-141gb --prompt-tokens 2048 --output-tokens 256
     --batch 8 --tp 2'
    """
    words = ["roofline", verb, scenario.model_word(), scenario.accelerator_word()]
    return shlex.join([*words, *predict_flags(scenario)])


def python_line(scenario: Scenario) -> str:
    """The same question for Python.

    >>> from roofline.app.scenario import scenario_of
    >>> print(python_line(scenario_of({"batch": 8})))
    roofline.predict('llama-3.1-8b', 'h200-sxm-141gb', prompt_tokens=2048, output_tokens=256,
        batch=8)
    """
    inputs = scenario.inputs()
    words = [scenario.model_python(), repr(inputs["accelerator"])]
    words += [f"{name}={inputs[name]!r}" for name in ("prompt_tokens", "output_tokens", "batch")]
    words += plan_words(scenario) + settings_words(scenario)
    return f"roofline.predict({', '.join(words)})"


def plan_words(scenario: Scenario) -> list[str]:
    """The plan as an argument in Python; nothing for one accelerator."""
    ranks = {name: getattr(scenario, name) for name in ("tp", "pp", "dp", "ep")}
    shown = ", ".join(f"{name}={count}" for name, count in ranks.items() if count != 1)
    return [f"parallel=roofline.Parallel({shown})"] if shown else []


def settings_words(scenario: Scenario) -> list[str]:
    """Formats, engine, machine, network and price as arguments in Python."""
    inputs = scenario.inputs()
    words = []
    if scenario.engine_version or scenario.memory_fraction is not None:
        words.append(
            f"engine=roofline.Engine({scenario.engine!r}, version={inputs['engine_version']!r}, "
            f"memory_fraction={scenario.memory_fraction!r})"
        )
    elif scenario.engine != BY_NAME["engine"].default:
        words.append(f"engine={scenario.engine!r}")
    for name in ("weights", "kv", "machine", "compute", "network", "usd_per_hour"):
        if inputs[name] is not None:
            words.append(f"{name}={inputs[name]!r}")
    return words
