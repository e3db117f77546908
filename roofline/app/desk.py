"""The planning desk: scenarios in the sidebar, pages beside them, one session apart from another.

A page is made anew at every change; what the library answered once is not asked again.

Limits   A view: no formula, price or constant is here.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from types import ModuleType

import streamlit as st

from roofline.app.asking import TITLES, ask_scenarios, link_doubts, remember_link
from roofline.app.scenario import Scenario
from roofline.app.words import escaped
from roofline.errors import RooflineError

ICON = Path(__file__).with_name("icon.png")
"""A picture of our own: a named icon would be fetched from elsewhere."""


@dataclass(frozen=True)
class View:
    """One page: its module (and address), its title and its icon."""

    name: str
    title: str
    icon: str


VIEWS = (
    View("predict", "Predict", ":material/speed:"),
    View("roofline", "Roofline", ":material/roofing:"),
    View("plan", "Plan", ":material/dns:"),
    View("compare", "Compare", ":material/compare_arrows:"),
    View("measure", "Measure", ":material/timer:"),
    View("diagnose", "Diagnose", ":material/troubleshoot:"),
    View("accuracy", "Accuracy", ":material/target:"),
    View("training", "Training", ":material/model_training:"),
    View("specs", "Specs & models", ":material/menu_book:"),
)
"""The pages in the order of the menu; a page's module is loaded when it is first shown."""


def main() -> None:
    """Make the page that is asked for."""
    st.set_page_config(page_title="roofline", page_icon=str(ICON), layout="wide")
    remember_link()
    scenarios: dict[str, Scenario] = {}
    pages = [
        st.Page(_maker(view, scenarios), title=view.title, icon=view.icon, url_path=view.name,
                default=place == 0)
        for place, view in enumerate(VIEWS)
    ]  # fmt: skip
    page = st.navigation(pages)
    scenarios |= ask_scenarios()
    page.run()


def _maker(view: View, scenarios: Mapping[str, Scenario]) -> Callable[[], None]:
    def make() -> None:
        _show(view, scenarios)

    make.__name__ = view.name
    return make


def _show(view: View, scenarios: Mapping[str, Scenario]) -> None:
    page = import_module(f"roofline.app.views.{view.name}")
    st.title(view.title, anchor=False)
    st.caption(page.ABOUT)
    doubts = st.container()
    if len(scenarios) == 1:
        (side,) = scenarios
        _guarded(page, scenarios[side], side)
    else:
        for column, (side, scenario) in zip(
            st.columns(len(scenarios), gap="medium"), scenarios.items(), strict=True
        ):
            with column:
                st.subheader(f"{TITLES[side][-1]}: {escaped(scenario.label())}", anchor=False)
                _guarded(page, scenario, side)
    if found := link_doubts():
        doubts.warning(
            "The link had values that are not known here, so the usual ones are shown: "
            + "; ".join(escaped(line) for line in found),
            icon=":material/link_off:",
        )


def _guarded(page: ModuleType, scenario: Scenario, side: str) -> None:
    try:
        page.show_page(scenario, side)
    except RooflineError as error:
        st.error(escaped(error), icon=":material/error:")
