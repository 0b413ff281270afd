"""Spawns a program on a terminal for each line on stdin, and prints the time to
its first byte in ms.

client.py                        without a host, by fork and exec
client.py DIR SIDECAR ARGUMENT…  through the sidecar, as any editor could

It knows the protocol from docs/protocol.md alone, and shares no code with the
sidecar.
"""

import base64
import json
import os
import pty
import subprocess
import sys
import time


def bare():
    begun = time.perf_counter()
    pid, terminal = pty.fork()
    if pid == 0:
        os.execv("/bin/echo", ["/bin/echo", "x"])
    os.read(terminal, 1)
    took = time.perf_counter() - begun
    os.waitpid(pid, 0)
    os.close(terminal)
    return took


class Sidecar:
    def __init__(self, directory, argv):
        self.directory = directory
        self.last = 0
        self.process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.call("initialize", {"clientInfo": {"name": "client.py"}})
        self.send({"method": "initialized", "params": {}})

    def send(self, message):
        body = json.dumps({"jsonrpc": "2.0", **message}).encode()
        self.process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(body) + body)
        self.process.stdin.flush()

    def receive(self):
        length = 0
        while line := self.process.stdout.readline().strip():
            name, value = line.split(b":")
            if name.lower() == b"content-length":
                length = int(value)
        if length == 0:
            sys.exit("the sidecar has ended")
        return json.loads(self.process.stdout.read(length))

    def call(self, method, params):
        self.last += 1
        self.send({"id": self.last, "method": method, "params": params})
        while True:
            message = self.receive()
            if message.get("id") == self.last:
                if "error" in message:
                    sys.exit(message["error"]["message"])
                return message["result"]

    def spawn(self):
        begun = time.perf_counter()
        program = {"command": "/bin/echo", "args": ["x"], "cwd": self.directory}
        session = self.call("terminal/spawn", {"kind": "terminal", **program})
        took = None
        while True:
            message = self.receive()
            method = message.get("method")
            if method == "terminal/output" and took is None:
                base64.b64decode(message["params"]["data"])
                took = time.perf_counter() - begun
            elif method == "terminal/exited":
                self.call("terminal/close", {"sessionId": session["sessionId"]})
                return took


    def stop(self):
        self.call("shutdown", {})
        self.send({"method": "exit", "params": {}})
        self.process.wait()


sidecar = Sidecar(sys.argv[1], sys.argv[2:]) if len(sys.argv) > 1 else None
measure = sidecar.spawn if sidecar else bare
print("ready", flush=True)
for _ in sys.stdin:
    print(measure() * 1000, flush=True)
if sidecar:
    sidecar.stop()
