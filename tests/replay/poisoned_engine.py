"""An engine that a certain request poisons for a certain later one: poisoned_engine.py --port N [--symptom crash].

Its memory goes over requests, as a cache does: after a prompt that holds FIRST it fails at one that holds LAST. The
symptom is `crash`, `http500`, or `sometimes`, a crash at every second launch (a file beside LUCK counts them).
"""

import argparse
import json
import os
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

FIRST, LAST = "belladonna", "digitalis"


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    poisoned = False
    armed = True
    symptom = "crash"
    lock = threading.Lock()

    def do_GET(self) -> None:
        self.answer(200, {"data": [{"id": "m"}]})

    def do_POST(self) -> None:
        prompt = str(json.loads(self.rfile.read(int(self.headers["Content-Length"]))).get("prompt"))
        with Handler.lock:
            if FIRST in prompt:
                Handler.poisoned = True
            fails = LAST in prompt and Handler.poisoned and Handler.armed
        if fails and self.symptom == "http500":
            self.answer(500, {"error": {"message": "RuntimeError: the cache is poisoned"}})
            return
        if fails:
            print(
                "RuntimeError: CUDA error: an illegal memory access was encountered",
                file=sys.stderr,
                flush=True,
            )
            os._exit(1)
        self.answer(200, {"choices": [{"text": f"well, {prompt[:20]}", "finish_reason": "stop"}]})

    def answer(self, status: int, content: Any) -> None:
        text = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def log_message(self, *_: object) -> None:
        """Nobody reads it."""


class Server(ThreadingHTTPServer):
    request_queue_size = 512
    daemon_threads = True


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--symptom", default="crash")
    parser.add_argument("--luck", type=Path)
    parser.add_argument("--eager", action="store_true")
    asked = parser.parse_args()
    Handler.symptom = asked.symptom
    if asked.luck is not None:
        launches = int(asked.luck.read_text()) if asked.luck.exists() else 0
        asked.luck.write_text(str(launches + 1))
        Handler.armed = launches % 2 == 0
    Server(("127.0.0.1", asked.port), Handler).serve_forever()


if __name__ == "__main__":
    main()
