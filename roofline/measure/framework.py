"""torch, imported when it is first used, so that everything else works without it."""

import importlib
import importlib.util
from types import ModuleType
from typing import Any

from roofline.errors import MissingPackageError

INSTALL_LINE = 'pip install "torch>=2.6" nvidia-ml-py   # or: pip install "roofline[measure]"'


class LazyModule:
    """A module that is imported at its first use.

    >>> LazyModule("json", "").dumps([1])
    '[1]'
    >>> LazyModule("no_such_module", "pip install it").anything
    Traceback (most recent call last):
    ...
    roofline.errors.MissingPackageError: no_such_module is not installed; pip install it
    """

    def __init__(self, name: str, install: str) -> None:
        self._name = name
        self._install = install
        self._module: ModuleType | None = None

    def __getattr__(self, attribute: str) -> Any:
        if self._module is None:
            try:
                self._module = importlib.import_module(self._name)
            except ImportError:
                raise MissingPackageError(
                    f"{self._name} is not installed; {self._install}"
                ) from None
        return getattr(self._module, attribute)


torch: Any = LazyModule("torch", INSTALL_LINE)
functional: Any = LazyModule("torch.nn.functional", INSTALL_LINE)
distributed: Any = LazyModule("torch.distributed", INSTALL_LINE)


def installed(package: str) -> bool:
    """Say whether a package can be imported, without importing it.

    >>> installed("json"), installed("no_such_module")
    (True, False)
    """
    return importlib.util.find_spec(package) is not None
