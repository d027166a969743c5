# SPDX-License-Identifier: MIT
import os
from types import TracebackType
from typing import Literal, Optional, Type, TypedDict, Union

__all__ = ["activate", "activated", "deactivate", "is_active", "status"]
__version__: str

_Format = Literal["jitdump", "perfmap", "both"]
_Path = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]

class _Status(TypedDict):
    active: bool
    functions: int
    jitdump: Optional[str]
    perfmap: Optional[str]
    error: Optional[str]

def activate(
    format: Optional[_Format] = None, directory: Optional[_Path] = None, keep_existing: bool = False
) -> bool: ...
def deactivate() -> None: ...
def is_active() -> bool: ...
def status() -> _Status: ...

class activated:
    def __init__(
        self, format: Optional[_Format] = None, directory: Optional[_Path] = None, keep_existing: bool = False
    ) -> None: ...
    def __enter__(self) -> activated: ...
    def __exit__(
        self,
        *exception: Union[Optional[Type[BaseException]], Optional[BaseException], Optional[TracebackType]],
    ) -> None: ...
