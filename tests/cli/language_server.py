#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""language_server.py PTXGEN SPECS - the JSON Schema in an editor's YAML language server: every spec is right, planted mistakes are found.

Needs `yaml-language-server`, in PATH or named by YAML_LANGUAGE_SERVER (npm install yaml-language-server); is skipped without it.
"""
import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

SKIPPED = 77
MISTAKES = {  # what replaces the line of dot.yaml that begins so, and the line that is marked
    "kind: reduce": "kind: reduse",
    "operator: add": "operatr: add",
    "outputs:": "determinism: [any]\noutputs:",
}


class Server:
    def __init__(self, command, schema):
        self.schema, self.number = schema, 0
        self.process = subprocess.Popen([command, "--stdio"], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.ask("initialize", {"processId": os.getpid(), "rootUri": None, "capabilities": {"workspace": {"configuration": True}}})
        self.send({"method": "initialized", "params": {}})

    def send(self, message):
        text = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(text) + text)
        self.process.stdin.flush()

    def receive(self):
        length = 0
        while (line := self.process.stdout.readline().strip()) or not length:
            if not line:
                sys.exit("language_server: the server ended")
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        return json.loads(self.process.stdout.read(length))

    def wait(self, found):
        """The next message that is sought; what the server asks meanwhile is answered."""
        while True:
            message = self.receive()
            if message.get("method") == "workspace/configuration":
                yaml = {"schemas": {self.schema.as_uri(): "*.yaml"}, "schemaStore": {"enable": False}}
                self.send({"id": message["id"], "result": [yaml if i.get("section") == "yaml" else {} for i in message["params"]["items"]]})
            elif "id" in message and "method" in message:
                self.send({"id": message["id"], "result": None})
            elif found(message):
                return message

    def ask(self, method, params):
        self.number += 1
        self.send({"id": self.number, "method": method, "params": params})
        return self.wait(lambda m: m.get("id") == self.number)

    def diagnose(self, texts):
        """What the server says about each path, all of which are open at once."""
        said = {}
        for path, text in texts.items():
            self.send({"method": "textDocument/didOpen",
                       "params": {"textDocument": {"uri": path.as_uri(), "languageId": "yaml", "version": 1, "text": text}}})
        while len(said) < len(texts):
            params = self.wait(lambda m: m.get("method") == "textDocument/publishDiagnostics")["params"]
            said[params["uri"]] = params["diagnostics"]
        return [said[path.as_uri()] for path in texts]


def main():
    ptxgen, specs = sys.argv[1], sorted(pathlib.Path(sys.argv[2]).resolve().glob("*.yaml"))
    command = os.environ.get("YAML_LANGUAGE_SERVER") or shutil.which("yaml-language-server")
    if not command:
        print("language_server: skipped: there is no yaml-language-server (npm install yaml-language-server; YAML_LANGUAGE_SERVER names it)")
        sys.exit(SKIPPED)
    failures = 0
    with tempfile.TemporaryDirectory() as folder:
        schema = pathlib.Path(folder) / "ptxgen.schema.json"
        schema.write_bytes(subprocess.run([ptxgen, "schema"], capture_output=True, check=True).stdout)
        server = Server(command, schema)
        for spec, said in zip(specs, server.diagnose({spec: spec.read_text() for spec in specs})):
            for d in said:
                print(f"FAIL {spec.name}:{d['range']['start']['line'] + 1}: {d['message']}")
                failures += 1
        dot = next(spec for spec in specs if spec.name == "dot.yaml").read_text()
        texts = {pathlib.Path(folder) / f"mistake{i}.yaml": dot.replace(f"\n{line}", f"\n{wrong}", 1)
                 for i, (line, wrong) in enumerate(MISTAKES.items())}
        for wrong, text, found in zip(MISTAKES.values(), texts.values(), server.diagnose(texts)):
            marked = text.splitlines().index(wrong.splitlines()[0])
            if not any(d["range"]["start"]["line"] == marked for d in found):
                print(f"FAIL '{wrong}' is not found: {found}")
                failures += 1
        server.process.kill()
    print(f"language_server: {len(specs)} specs and {len(MISTAKES)} mistakes, {failures} failures")
    sys.exit(failures > 0)


main()
