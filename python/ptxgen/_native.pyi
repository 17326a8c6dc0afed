# SPDX-License-Identifier: Apache-2.0
from typing import Any

from . import Array as Array, Function as Function, explain_code as explain_code, schema as schema

version: str

def __getattr__(name: str) -> Any: ...
