# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable
from typing import Any

from ._values import Value as Value

_F1 = Callable[[Any], Value]
_F2 = Callable[[Any, Any], Value]
_F3 = Callable[[Any, Any, Any], Value]

def where(condition: Any, x: Any, y: Any) -> Value: ...
def logical_not(x: Any) -> Value: ...
def index(dimension: str | Value) -> Value: ...
def at(array: Value, *places: Any) -> Value: ...
def expression(source: str) -> Value: ...

abs: _F1; acos: _F1; asin: _F1; atan: _F1; cbrt: _F1; ceil: _F1; clz: _F1; cos: _F1; cosh: _F1; ctz: _F1; erf: _F1; exp: _F1; exp10: _F1; exp2: _F1
expm1: _F1; floor: _F1; isinf: _F1; isnan: _F1; log: _F1; log10: _F1; log1p: _F1; log2: _F1; popcount: _F1; round: _F1; rsqrt: _F1; sign: _F1
sin: _F1; sinh: _F1; sqrt: _F1; tan: _F1; tanh: _F1; trunc: _F1; bool: _F1; i8: _F1; i16: _F1; i32: _F1; i64: _F1; u8: _F1; u16: _F1; u32: _F1
u64: _F1; f16: _F1; bf16: _F1; f32: _F1; f64: _F1
atan2: _F2; hypot: _F2; max: _F2; min: _F2; pow: _F2
clamp: _F3; fma: _F3; select: _F3
