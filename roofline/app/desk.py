"""The planning desk: scenarios in the sidebar, pages beside them, one session apart from another.

A page is made anew at every change; what the library answered once is not asked again.

Limits   A view: no formula, price or constant is here.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import streamlit as st

from roofline.app.asking import TITLES, ask_scenarios, link_doubts, remember_link
from roofline.app.scenario import Scenario
from roofline.app.words import escaped
from roofline.errors import RooflineError

ICON = Path(__file__).with_name("icon.png")
"""A picture of our own: a named icon would be fetched from elsewhere."""
VIEWS = ("predict", "roofline", "plan", "compare", "training")
"""Pages by their module, in the order of the menu."""


def main() -> None:
    """Make the page that is asked for."""
    st.set_page_config(page_title="roofline", page_icon=str(ICON), layout="wide")
    remember_link()
    views = [import_module(f"roofline.app.views.{name}") for name in VIEWS]
    scenarios: dict[str, Scenario] = {}
    pages = [
        st.Page(_maker(view, scenarios), title=view.TITLE, icon=view.ICON, url_path=view.PATH,
                default=place == 0)
        for place, view in enumerate(views)
    ]  # fmt: skip
    page = st.navigation(pages)
    scenarios |= ask_scenarios()
    page.run()


def _maker(view: ModuleType, scenarios: Mapping[str, Scenario]) -> Callable[[], None]:
    def make() -> None:
        _show(view, scenarios)

    make.__name__ = view.PATH
    return make


def _show(view: Any, scenarios: Mapping[str, Scenario]) -> None:
    st.title(view.TITLE, anchor=False)
    st.caption(view.ABOUT)
    doubts = st.container()
    if len(scenarios) == 1:
        (side,) = scenarios
        _guarded(view, scenarios[side], side)
    else:
        for column, (side, scenario) in zip(
            st.columns(len(scenarios), gap="medium"), scenarios.items(), strict=True
        ):
            with column:
                st.subheader(f"{TITLES[side][-1]}: {escaped(scenario.label())}", anchor=False)
                _guarded(view, scenario, side)
    if found := link_doubts():
        doubts.warning(
            "The link had values that are not known here, so the usual ones are shown: "
            + "; ".join(escaped(line) for line in found),
            icon=":material/link_off:",
        )


def _guarded(view: Any, scenario: Scenario, side: str) -> None:
    try:
        view.show_page(scenario, side)
    except RooflineError as error:
        st.error(escaped(error), icon=":material/error:")
