# SPDX-License-Identifier: Apache-2.0
"""verdicts.py - what a tool has found in order before, so that it need not look again.

As with ccache, the key is the hash of all that the tool reads: its version, its arguments, the contents of its files.  Only "in order" is
kept, for thirty days since it was last asked for, in ~/.cache/ptxgen-verdicts (PTXGEN_VERDICTS names another folder; `off`: nothing is kept).
"""
import hashlib
import json
import os
import pathlib
import subprocess
import time

DAYS = 30


class Verdicts:
    def __init__(self, name, *tool):
        """name: of the file; tool: the command that prints its version."""
        where = os.environ.get('PTXGEN_VERDICTS') or os.path.join(
            os.environ.get('XDG_CACHE_HOME') or os.path.expanduser('~/.cache'), 'ptxgen-verdicts')
        self.path = None if where == 'off' else pathlib.Path(where) / name
        self.version = subprocess.run(tool, capture_output=True, check=True).stdout
        self.today, self.used = int(time.time()) // 86400, set()
        try:
            self.known = json.loads(self.path.read_text()) if self.path else {}
        except (OSError, ValueError):
            self.known = {}

    def key(self, *parts):
        """parts: bytes or text"""
        h = hashlib.sha256()
        for part in (self.version, *parts):
            data = part if isinstance(part, bytes) else part.encode()
            h.update(len(data).to_bytes(8, 'little') + data)
        return h.hexdigest()

    def good(self, key):
        """Was it in order before?"""
        if self.path and key in self.known:
            self.used.add(key)
            return True
        return False

    def found_good(self, key):
        self.used.add(key)

    def save(self):
        if not self.path:
            return
        kept = {k: day for k, day in self.known.items() if day > self.today - DAYS} | dict.fromkeys(sorted(self.used), self.today)
        self.path.parent.mkdir(parents=True, exist_ok=True)
        new = self.path.with_name(f'{self.path.name}.{os.getpid()}')
        new.write_text(json.dumps(kept))
        new.replace(self.path)
