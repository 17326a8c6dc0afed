# SPDX-License-Identifier: Apache-2.0
"""known.py - faults that are known and being mended.  What is True the generator leaves out meanwhile, or the evaluator
takes either way; a failure with one of the messages is counted by itself.
"""

MANY_INPUTS = True           # "a formula of case ... is too long" with many or three-dimensional inputs
BYTES_BETWEEN_OFFSETS = True  # reductions between offsets over inputs of one byte: "a thread holds at most 64 elements"
ASSUME = True                # launches that break an `assume` are not refused
SHIFTS_BEYOND_32_BITS = True  # shift amounts of 2^32 and more on GPUs
VARIANTS = True              # variants that are listed as legal and refused
GATHER_AND_OR = True         # `gather(..., and, ...)` and `or` do not parse
DEVICE_ALIGNMENT = True      # bits of reductions beside a stencil depend on the alignment
LONG_LETS = True             # long chains of lets take exponential time
BF16_SUBNORMALS = True       # flushed to zero on some hosts
NARROW_FMA = True            # fma of f16 and bf16 rounds twice
ZERO_SIGNS_OF_MIN_MAX = True  # min and max of zeros of both signs
ELEMENTS_OUTSIDE = True      # per-element outputs of a reduction outside of all segments: written or not?
GATHER_IDENTITY = True       # does a gather begin with the identity (min of a NaN alone, sum of a -0 alone)?
INTERIOR_BESIDE = True       # reductions beside a stencil with points that are not computed: which are combined?

MESSAGES = [
    r"a formula of case '\w+' is too long",
    r'a thread holds at most 64 elements of a segment',
    r'variant segreduce\.subwarp@\S*lanes=0',
    r'variant segreduce\.column@\S*vector=2',
    r'variant segreduce\.offsets@\S*bulk=[1-9]',
    r'variant segscan\.column@\S*rows=[2-9]',
]
