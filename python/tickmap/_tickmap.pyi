# SPDX-License-Identifier: MIT
from types import ModuleType

from tickmap import activate as activate, deactivate as deactivate, is_active as is_active, status as status

def tell_at_exit() -> None: ...
def working() -> ModuleType: ...
