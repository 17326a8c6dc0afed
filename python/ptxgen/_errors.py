# SPDX-License-Identifier: Apache-2.0
"""The exceptions, and the messages that they carry as data."""


class Diagnostic:
    """A message: severity ('note', 'warning', 'error'), code or 0, place in a spec, message and hint."""

    __slots__ = ("severity", "code", "file", "line", "column", "end_line", "end_column", "message", "hint")

    def __init__(self, severity, *fields):
        self.severity = ("note", "warning", "error")[severity]
        for name, value in zip(self.__slots__[1:], fields):
            setattr(self, name, value)

    @property
    def place(self):
        """'FILE:LINE:COLUMN', or '' for a message that has none."""
        return f"{self.file}:{self.line}:{self.column}" if self.file else ""

    def __str__(self):
        return f"{self.place}: {self.message}" if self.file else self.message

    def __repr__(self):
        code = f"PTXG-{self.code:04d} " if self.code else ""
        return f"<Diagnostic {code}{self.severity}: {self}>"


class Error(Exception):
    """What ptxgen refuses; diagnostics are its messages as data."""

    diagnostics = ()

    def __init__(self, *args):
        super().__init__(*args)
        self.diagnostics = (Diagnostic(2, 0, None, 0, 0, 0, 0, str(self), None),)


class SpecError(Error, ValueError):
    """The spec or the data is wrong."""


class UsageError(Error, ValueError):
    """An argument of a call is wrong."""


class UnsupportedError(Error, NotImplementedError):
    """No strategy fits; the notes say why."""


class DeviceError(Error, RuntimeError):
    """No GPU, no driver, or no memory on it."""


class FileError(Error, OSError):
    """A file could not be read or written."""


class MismatchError(Error, AssertionError):
    """A result differs from the sequential reference."""


class FindingError(Error, RuntimeError):
    """The host executor found a fault in a kernel."""


class InternalError(Error, RuntimeError):
    """A fault of ptxgen."""


for _kind in (Diagnostic, Error, SpecError, UsageError, UnsupportedError, DeviceError, FileError, MismatchError, FindingError, InternalError):
    _kind.__module__ = "ptxgen"  # where users find them

# By ptxgen_status; 5 is MemoryError.
CLASSES = {1: SpecError, 2: UsageError, 3: UnsupportedError, 4: DeviceError, 6: FileError, 7: MismatchError, 8: FindingError}


def make(status, title, text, diagnostics):
    """The exception for a status of the library: its first error in one line, and all messages with their places as notes."""
    text = text.replace("ptxgen_prepare()", "f.prepare()")
    first = next((d for d in diagnostics if d.severity == "error"), None)
    line = str(first).replace("ptxgen_prepare()", "f.prepare()") if first else title
    error = CLASSES.get(status, InternalError)(line)
    error.diagnostics = diagnostics or error.diagnostics
    hint = [f"hint: {first.hint}"] if first and first.hint else []
    where = [text.rstrip()] if first and (first.file or len(diagnostics) > 1) else []
    if hint or where:
        error.__notes__ = hint + where
    return error
