"""A fake serving engine: an OpenAI-compatible endpoint whose fault is a boolean expression over its settings.

    python fake_engine.py --port 8000 --eager --pp 3 ...

Any `--name value` or `--name` is a setting (`-` reads as `_`; a switch alone is "on"). The fault is told by
variables, so that the command line holds nothing but settings:

    FAKE_FAULT     "eager && pp>1"; a request's own fields are settings too: stream, temperature, at_once ...
    FAKE_SYMPTOM   crash (default), abort, exit0, silent, babble, wrong, hang, http500, nan,
                   refuse (401 to everything), endless (a stream without an end), late (dies two seconds
                   after it is ready, whatever is asked), startup (dies before it is ready), startup_hang
    FAKE_RATE      the rate at which it fails where the expression holds (default 1), drawn once a launch
    FAKE_LUCK      a file that counts launches, so that the draws are the same in every run
    FAKE_FAULT2, FAKE_SYMPTOM2   a second fault
    FAKE_CLOCK     a file that takes the time of the root event, in seconds since the epoch
    FAKE_DEFAULTS  "pp=1 eager=off": levels of settings that the command line does not mention
    FAKE_IGNORES   "kv_dtype=fp8:auto": asked for the one, the engine silently takes the other
"""

import hashlib
import json
import os
import re
import signal
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.faults import parse_fault

STARTUP_SYMPTOMS = ("startup", "startup_hang", "late")


def read_settings(argv: list[str]) -> dict[str, str]:
    settings = dict(pair.split("=", 1) for pair in os.environ.get("FAKE_DEFAULTS", "").split())
    place = 0
    while place < len(argv):
        word = argv[place]
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            if not equals and place + 1 < len(argv) and not argv[place + 1].startswith("--"):
                place += 1
                value = argv[place]
            elif not equals:
                name, value = (name[3:], "off") if name.startswith("no-") else (name, "on")
            settings[name.replace("-", "_")] = value
        place += 1
    for rule in os.environ.get("FAKE_IGNORES", "").split():
        asked, taken = rule.split(":")
        name, level = asked.split("=")
        if settings.get(name) == level:
            settings[name] = taken
    return settings


def is_lucky(rate: float) -> bool:
    """Whether the fault stays away in this launch: a draw that depends only on the number of the launch."""
    counter = os.environ.get("FAKE_LUCK")
    if rate >= 1.0 or not counter:
        return False
    with Path(counter).open("a+", encoding="utf-8") as file:
        file.write("x")
        file.flush()
        number = file.tell()
    digest = hashlib.sha256(f"{number}".encode()).digest()
    return int.from_bytes(digest[:4], "big") / 2**32 >= rate


class Engine:
    """Settings, faults and the state that requests share."""

    def __init__(self, settings: dict[str, str]) -> None:
        self.settings = settings
        self.lucky = is_lucky(float(os.environ.get("FAKE_RATE", "1")))
        self.faults = [
            (parse_fault(os.environ[f"FAKE_FAULT{number}"]), os.environ.get(f"FAKE_SYMPTOM{number}", "crash"))
            for number in ("", "2")
            if os.environ.get(f"FAKE_FAULT{number}")
        ]
        self.running = 0
        self.seen: set[str] = set()
        self.lock = threading.Lock()

    def symptom(self, fields: dict[str, str], *, starting: bool = False) -> str | None:
        if self.lucky:
            return None
        for fault, symptom in self.faults:
            if (symptom in STARTUP_SYMPTOMS) is starting and fault({**self.settings, **fields}):
                return symptom
        return None

    def die(self, symptom: str) -> None:
        if symptom in ("crash", "startup", "exit0"):
            log("ERROR engine.py:101 step failed")
            log("Traceback (most recent call last):")
            log('  File "engine.py", line 101, in step')
            log("    run_kernel(batch)")
            log('  File "engine.py", line 55, in run_kernel')
            log('    raise RuntimeError(f"kernel failed on block {block}")')
            if clock := os.environ.get("FAKE_CLOCK"):
                Path(clock).write_text(str(time.time()))
            log(f"RuntimeError: kernel failed on block {os.getpid()}")
            log("ERROR server.py:12 engine is dead, shutting down")
        if symptom == "abort":
            log("engine.c:12: assertion `block < limit' failed")
            os.abort()
        if symptom == "silent":
            os.kill(os.getpid(), signal.SIGKILL)
        os._exit(0 if symptom == "exit0" else 1)


def log(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def answer_to(prompt: str) -> str:
    """The fake model: adds, knows capitals, and finds a record in its prompt."""
    numbers = re.findall(r"(\d+)\s*\+\s*(\d+)", prompt)
    if numbers:
        return str(int(numbers[-1][0]) + int(numbers[-1][1]))
    for country, capital in (
        ("France", "Paris"),
        ("Japan", "Tokyo"),
        ("Italy", "Rome"),
        ("Germany", "Berlin"),
    ):
        if country in prompt:
            return capital
    record = re.search(r"The access code of (.+?) is (\S+?)\.(?:\s|$)", prompt)
    return record[2] if record else "I do not know."


class Handler(BaseHTTPRequestHandler):
    engine: Engine
    protocol_version = "HTTP/1.1"

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        if self.path == "/health":
            self.reply(200, {"status": "ok"})
        elif self.path == "/v1/models":
            self.reply(200, {"data": [{"id": "fake", "max_model_len": 4096}]})
        elif self.path == "/settings":
            self.reply(200, self.engine.settings)
        else:
            self.reply(404, {"error": {"message": "no such page"}})

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if not self.path.endswith("/completions"):
            self.reply(404, {"error": {"message": "not supported"}})
            return
        chat = self.path.endswith("/chat/completions")
        prompt = "\n".join(m["content"] for m in body["messages"]) if chat else str(body["prompt"])
        with self.engine.lock:
            self.engine.running += 1
        try:
            self.answer(body, prompt, chat)
        finally:
            with self.engine.lock:
                self.engine.running -= 1

    def answer(self, body: dict[str, Any], prompt: str, chat: bool) -> None:
        time.sleep(0.05)  # an answer takes its time, so that requests sent at once really run at once
        tokens = len(prompt.split())
        cached = prompt in self.engine.seen
        self.engine.seen.add(prompt)
        fields = {key: str(value) for key, value in body.items() if isinstance(value, (int, float, str))}
        fields["stream"] = "on" if body.get("stream") else "off"
        fields["structured"] = "on" if "response_format" in body else "off"
        fields["prompt_tokens"] = str(tokens)
        fields["at_once"] = str(self.engine.running)
        fields["chat"] = "on" if chat else "off"
        symptom = self.engine.symptom(fields)
        if symptom in ("crash", "abort", "exit0", "silent"):
            self.engine.die(symptom)
        if symptom == "refuse":
            self.reply(401, {"error": {"message": "no key, no answer"}})
            return
        if symptom == "endless" and body.get("stream"):
            self.stream_without_end()
        if symptom == "hang":
            threading.Event().wait()
        if symptom == "http500":
            self.reply(500, {"error": {"message": "Internal Server Error"}})
            return
        text = {"babble": "!!!! " * 30, "wrong": "It is 7."}.get(symptom or "", answer_to(prompt))
        finish = "length" if symptom == "babble" else "stop"
        usage = {
            "prompt_tokens": tokens,
            "completion_tokens": len(text.split()),
            "prompt_tokens_details": {"cached_tokens": tokens if cached else 0},
        }
        logprobs = [float("nan") if symptom == "nan" else -0.01 for _ in text.split()]
        if body.get("stream"):
            self.stream(text, finish, usage, chat)
            return
        choice: dict[str, Any] = {"index": 0, "finish_reason": finish}
        if chat:
            choice["message"] = {"role": "assistant", "content": text}
            if body.get("logprobs"):
                choice["logprobs"] = {
                    "content": [
                        {
                            "token": token,
                            "logprob": value,
                            "top_logprobs": [{"token": token, "logprob": value}],
                        }
                        for token, value in zip(text.split(), logprobs, strict=True)
                    ]
                }
        else:
            choice["text"] = text
        self.reply(200, {"object": "x", "model": "fake", "choices": [choice], "usage": usage})

    def stream(self, text: str, finish: str, usage: dict[str, Any], chat: bool) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        for word in text.split():
            piece: dict[str, Any] = {"delta": {"content": word + " "}} if chat else {"text": word + " "}
            self.event({"choices": [{"index": 0, "finish_reason": None, **piece}]})
        last: dict[str, Any] = {"delta": {}} if chat else {"text": ""}
        self.event({"choices": [{"index": 0, "finish_reason": finish, **last}], "usage": usage})
        self.wfile.write(b"data: [DONE]\n\n")
        self.close_connection = True

    def stream_without_end(self) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        while True:
            self.event({"choices": [{"index": 0, "finish_reason": None, "delta": {"content": "on and "}}]})

    def event(self, content: dict[str, Any]) -> None:
        self.wfile.write(b"data: " + json.dumps(content).encode() + b"\n\n")
        self.wfile.flush()

    def reply(self, status: int, content: dict[str, Any]) -> None:
        data = json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def main() -> None:
    settings = read_settings(sys.argv[1:])
    engine = Engine(settings)
    log(f"INFO settings: {json.dumps(settings)}")
    symptom = engine.symptom({}, starting=True)
    if symptom == "startup":
        engine.die("startup")
    if symptom == "startup_hang":
        threading.Event().wait()
    if symptom == "late":
        threading.Timer(2.0, engine.die, ["silent"]).start()
    Handler.engine = engine
    server = ThreadingHTTPServer((settings.get("host", "127.0.0.1"), int(settings["port"])), Handler)
    server.daemon_threads = True
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    log("INFO ready")
    server.serve_forever()


if __name__ == "__main__":
    main()
