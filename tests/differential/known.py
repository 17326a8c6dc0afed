# SPDX-License-Identifier: Apache-2.0
"""known.py - faults that are known and being mended.  What is True the generator leaves out meanwhile, or the evaluator
takes either way; a failure with one of the messages is counted by itself.
"""

MANY_INPUTS = False  # "a formula of case ... is too long" with many or three-dimensional inputs
BYTES_BETWEEN_OFFSETS = False  # reductions between offsets over inputs of one byte: "a thread holds at most 64 elements"
ASSUME = False  # launches that break an `assume` are not refused
SHIFTS_BEYOND_32_BITS = False  # shift amounts of 2^32 and more on GPUs
VARIANTS = False  # variants that are listed as legal and refused
GATHER_AND_OR = False  # `gather(..., and, ...)` and `or` do not parse
DEVICE_ALIGNMENT = False  # bits of reductions beside a stencil depend on the alignment
LONG_LETS = False  # long chains of lets take exponential time
BF16_SUBNORMALS = False  # flushed to zero on some hosts
NARROW_FMA = False  # fma of f16 and bf16 rounds twice
ZERO_SIGNS_OF_MIN_MAX = False  # min and max of zeros of both signs
GATHER_IDENTITY = False  # does a gather begin with the identity (min of a NaN alone, sum of a -0 alone)?

MESSAGES = []
