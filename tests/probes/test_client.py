"""The client against a real HTTP server on this machine."""

import asyncio
import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from tests.probes.answers import chat, probe

from culpa.probes import Answer, Endpoint, Probe, Progress, Request, ask, client, measure_tokens_per_character


class Handler(BaseHTTPRequestHandler):
    """Answers each POST by the function that the test gave to the server."""

    server: "Server"

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        self.server.bodies.append(body)
        self.server.answer(self, body)

    def do_GET(self) -> None:
        if self.path == "/endless":
            self.send_response(200)
            self.end_headers()
            with contextlib.suppress(OSError):  # the client goes at some point
                while True:
                    self.wfile.write(b"x" * (1 << 20))
        elif self.path == "/silent":
            self.server.let_go.wait(30)
        else:
            reply(self, '{"data": []}')

    def log_message(self, format: str, *args: Any) -> None:
        """Keep the test's output clean."""


class Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, answer: Callable[[Handler, dict[str, Any]], None]) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.answer = answer
        self.let_go = threading.Event()
        self.bodies: list[dict[str, Any]] = []
        self.released = threading.Event()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


@contextmanager
def serving(answer: Callable[[Handler, dict[str, Any]], None]) -> Iterator[Server]:
    server = Server(answer)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.released.set()
        server.shutdown()
        thread.join()
        server.server_close()


def reply(handler: Handler, text: str, status: int = 200, kind: str = "application/json") -> None:
    content = text.encode()
    handler.send_response(status)
    handler.send_header("content-type", kind)
    handler.send_header("content-length", str(len(content)))
    handler.end_headers()
    handler.wfile.write(content)


def text_reply(text: str) -> str:
    return json.dumps({"choices": [{"message": {"content": text}, "finish_reason": "stop"}]})


def event(text: str, finish: str | None = None) -> str:
    choice = {"index": 0, "delta": {"content": text}, "finish_reason": finish}
    return f"data: {json.dumps({'choices': [choice]}, ensure_ascii=False)}\n\n"


def stream(handler: Handler, *events: str) -> None:
    """Send events with no length, so that only closing the connection ends them."""
    handler.send_response(200)
    handler.send_header("content-type", "text/event-stream; charset=utf-8")
    handler.end_headers()
    for one in events:
        handler.wfile.write(one.encode())
        handler.wfile.flush()


def send(server: Server, request: Request, on_tokens: Callable[[int], None] = lambda _: None) -> Answer:
    async def run() -> Answer:
        async with Endpoint(server.url, "the-model") as endpoint:
            return await endpoint.send(request, on_tokens)

    return asyncio.run(run())


def asked(server: Server, workload: Probe, seen: list[Progress]) -> tuple[Answer, ...]:
    async def run() -> tuple[Answer, ...]:
        async with Endpoint(server.url) as endpoint:
            return await ask(workload, endpoint, seen.append)

    return asyncio.run(run())


def test_a_whole_answer_is_read() -> None:
    with serving(lambda handler, _: reply(handler, text_reply("4"))) as server:
        answer = send(server, chat())
    assert (answer.status, answer.text, answer.failed) == (200, "4", False)


def test_a_missing_model_name_is_filled_in_and_a_given_one_kept() -> None:
    with serving(lambda handler, _: reply(handler, text_reply("4"))) as server:
        send(server, chat())
        send(server, chat(model="mine"))
        assert [body["model"] for body in server.bodies] == ["the-model", "mine"]


def test_fields_go_out_as_they_came() -> None:
    odd = {"x": [None, 1.5, {"ü": "\ud800"}]}
    with serving(lambda handler, _: reply(handler, text_reply("4"))) as server:
        send(server, chat(odd=odd))
        assert server.bodies[0]["odd"] == odd


def test_a_base_url_may_end_in_v1() -> None:
    async def run(server: Server) -> Answer:
        async with Endpoint(server.url + "/v1/") as endpoint:
            return await endpoint.send(chat())

    with serving(lambda handler, _: reply(handler, handler.path and text_reply(handler.path))) as server:
        assert asyncio.run(run(server)).text == "/v1/chat/completions"


def test_a_stream_is_put_together_and_tells_of_each_piece() -> None:
    pieces: list[int] = []
    events = (": comment\n\n", event("The "), event("answer\u2028"), event("", "stop"), "data: [DONE]\n\n")
    with serving(lambda handler, _: stream(handler, *events)) as server:
        answer = send(server, chat(stream=True), pieces.append)
    assert (answer.text, answer.finish_reason, answer.failed) == ("The answer\u2028", "stop", False)
    assert pieces == [1, 1]


def test_events_may_be_cut_anywhere_and_end_lines_either_way() -> None:
    whole = (event("Grüße") + event("", "stop")).replace("\n", "\r\n").encode()

    def in_bytes(handler: Handler, _: dict[str, Any]) -> None:
        stream(handler)
        for index in range(len(whole)):
            handler.wfile.write(whole[index : index + 1])
            handler.wfile.flush()

    with serving(in_bytes) as server:
        assert send(server, chat(stream=True)).text == "Grüße"


def test_a_stream_that_just_ends_is_a_lost_connection_with_what_had_come() -> None:
    with serving(lambda handler, _: stream(handler, event("The "))) as server:
        answer = send(server, chat(stream=True))
    assert (answer.failure, answer.text) == ("connection_lost", "The ")
    assert "1 pieces" in (answer.error or "")


def test_a_stream_with_a_finish_reason_but_no_end_mark_is_whole() -> None:
    with serving(lambda handler, _: stream(handler, event("4", "stop"))) as server:
        assert not send(server, chat(stream=True)).failed


def test_an_event_that_is_no_json_is_malformed() -> None:
    with serving(lambda handler, _: stream(handler, event("4"), 'data: {"choices": [\n\n')) as server:
        answer = send(server, chat(stream=True))
    assert (answer.failure, answer.text) == ("malformed", "4")


def test_an_error_within_a_stream_is_the_engines_error() -> None:
    bad = 'data: {"error": {"message": "EngineCore encountered an issue"}}\n\n'
    with serving(lambda handler, _: stream(handler, event("4"), bad, "data: [DONE]\n\n")) as server:
        answer = send(server, chat(stream=True))
    assert (answer.failure, answer.error) == ("http_error", "EngineCore encountered an issue")


def test_nan_within_a_stream_is_noticed() -> None:
    logprobs = {"content": [{"token": "x", "logprob": float("nan")}]}
    bad = f"data: {json.dumps({'choices': [{'delta': {}, 'logprobs': logprobs}]})}\n\n"
    with serving(lambda handler, _: stream(handler, bad, event("4", "stop"))) as server:
        assert send(server, chat(stream=True)).nan is not None


def test_a_server_that_answers_a_stream_request_whole_is_understood() -> None:
    with serving(lambda handler, _: reply(handler, text_reply("4"))) as server:
        assert send(server, chat(stream=True)).text == "4"


def test_an_error_status_is_data() -> None:
    text = '{"error": {"message": "no"}}'
    with serving(lambda handler, _: reply(handler, text, 500)) as server:
        answer = send(server, chat(stream=True))
    assert (answer.status, answer.failure, answer.error) == (500, "http_error", "no")


def test_a_server_that_closes_without_a_word_is_a_lost_connection() -> None:
    with serving(lambda handler, _: handler.connection.close()) as server:
        assert send(server, chat()).failure == "connection_lost"


def test_a_body_that_is_cut_is_a_lost_connection() -> None:
    def cut(handler: Handler, _: dict[str, Any]) -> None:
        handler.send_response(200)
        handler.send_header("content-length", "1000")
        handler.end_headers()
        handler.wfile.write(b"{")

    with serving(cut) as server:
        answer = send(server, chat())
    assert (answer.status, answer.failure) == (200, "connection_lost")


def test_nobody_listening_is_no_connection() -> None:
    with serving(lambda handler, _: None) as server:
        pass
    assert send(server, chat()).failure == "not_connected"


def test_cancelling_drops_the_connection_at_once() -> None:
    dropped = threading.Event()

    def endless(handler: Handler, _: dict[str, Any]) -> None:
        stream(handler)
        try:
            while not handler.server.released.wait(0.01):
                stream_piece = event("x").encode()
                handler.wfile.write(stream_piece)
                handler.wfile.flush()
        except OSError:
            dropped.set()

    async def run(server: Server) -> float:
        started = asyncio.Event()

        def tell(seen: Progress) -> None:
            if seen.tokens:
                started.set()

        async with Endpoint(server.url) as endpoint:
            workload = probe(chat(stream=True))
            task = asyncio.create_task(ask(workload, endpoint, tell))
            await started.wait()
            began = time.monotonic()
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            assert task.cancelled()
            return time.monotonic() - began

    with serving(endless) as server:
        assert asyncio.run(run(server)) < 2
        assert dropped.wait(10)


def test_the_requests_of_a_round_are_under_way_together() -> None:
    barrier = threading.Barrier(3, timeout=30)

    def together(handler: Handler, _: dict[str, Any]) -> None:
        barrier.wait()
        reply(handler, text_reply("4"))

    seen: list[Progress] = []
    with serving(together) as server:
        answers = asked(server, Probe("test", ((chat(),) * 3,)), seen)
    assert [answer.text for answer in answers] == ["4"] * 3
    assert seen[0] == Progress(requests=3, sent=3)
    assert seen[-1].answered == 3


def test_answers_stand_in_the_order_of_their_requests() -> None:
    def echo(handler: Handler, body: dict[str, Any]) -> None:
        reply(handler, text_reply(body["messages"][0]["content"]))

    workload = Probe("test", ((chat("a"), chat("b")), (chat("c"),)), preceding=((chat("z"),),))
    with serving(echo) as server:
        assert [answer.text for answer in asked(server, workload, [])] == ["z", "a", "b", "c"]


def test_a_failure_ends_the_asking_after_its_round() -> None:
    with serving(lambda handler, _: reply(handler, "{}", 500)) as server:
        assert len(asked(server, Probe("test", ((chat(), chat()), (chat(),))), [])) == 2
        assert len(server.bodies) == 2


def test_a_refusal_of_what_only_precedes_does_not_end_the_asking() -> None:
    def refuse_tools(handler: Handler, body: dict[str, Any]) -> None:
        if "tools" in body:
            reply(handler, '{"error": "tools param requires --jinja flag"}', 500)
        else:
            reply(handler, text_reply("4"))

    workload = probe(chat()).after([probe(chat(tools=[{}]))])
    with serving(refuse_tools) as server:
        assert [answer.status for answer in asked(server, workload, [])] == [500, 200]


def measured(times: int) -> Probe:
    return probe(*[Request(chat().endpoint, chat().body, measured=True)] * times)


def test_log_probabilities_are_asked_for_on_top_where_the_answer_is_measured() -> None:
    with serving(lambda handler, _: reply(handler, text_reply("4"))) as server:
        asked(server, measured(1), [])
        assert server.bodies[0]["logprobs"] is True
        assert server.bodies[0]["top_logprobs"] == 5


def test_an_engine_without_log_probabilities_is_asked_once_and_then_left_alone() -> None:
    def refuse(handler: Handler, body: dict[str, Any]) -> None:
        if "logprobs" in body:
            reply(handler, '{"detail": "unknown field"}', 422)
        else:
            reply(handler, text_reply("4"))

    with serving(refuse) as server:
        answers = asked(server, measured(2), [])
        assert [answer.text for answer in answers] == ["4", "4"]
        assert ["logprobs" in body for body in server.bodies] == [True, False, False]


def test_a_request_that_is_refused_anyway_says_nothing_of_log_probabilities() -> None:
    async def run(server: Server) -> Endpoint:
        async with Endpoint(server.url) as endpoint:
            await ask(measured(1), endpoint)
            return endpoint

    with serving(lambda handler, _: reply(handler, "{}", 400)) as server:
        assert asyncio.run(run(server)).supports_logprobs is None


def test_the_engines_tokenizer_is_measured_where_it_can_be_asked() -> None:
    def tokens(handler: Handler, body: dict[str, Any]) -> None:
        count = len(body["content"]) // 4
        reply(handler, json.dumps({"count": count, "tokens": [1] * count}))

    async def run(server: Server) -> float | None:
        async with Endpoint(server.url) as endpoint:
            return await measure_tokens_per_character(endpoint)

    with serving(tokens) as server:
        ratio = asyncio.run(run(server))
    assert ratio is not None
    assert 0.24 < ratio <= 0.25
    with serving(lambda handler, _: reply(handler, "{}", 404)) as server:
        assert asyncio.run(run(server)) is None


def test_a_get_is_status_and_text_or_nothing() -> None:
    async def run(server: Server) -> tuple[int, str] | None:
        async with Endpoint(server.url) as endpoint:
            return await endpoint.get("/v1/models")

    with serving(lambda handler, _: None) as server:
        assert asyncio.run(run(server)) == (200, '{"data": []}')
    assert asyncio.run(run(server)) is None


@pytest.mark.parametrize("path", ["/endless", "/silent"])
def test_a_get_that_never_ends_is_no_answer(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "_GET_SECONDS", 0.3 if path == "/silent" else 30.0)

    async def run(server: Server) -> tuple[int, str] | None:
        async with Endpoint(server.url) as endpoint:
            return await endpoint.get(path)

    with serving(lambda handler, _: None) as server:
        assert asyncio.run(run(server)) is None
        server.let_go.set()
