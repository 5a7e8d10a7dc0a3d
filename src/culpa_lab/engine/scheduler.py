"""Continuous batching: which requests take part in the next step, with how many tokens."""

from collections import deque
from dataclasses import dataclass

from culpa_lab.engine.hooks import Hooks
from culpa_lab.engine.kv_cache_manager import KVCacheManager
from culpa_lab.engine.request import NewRequest, Request
from culpa_lab.engine.steps import Sampled, Segment, Step, StepResult

# Decode steps of one request that may be in flight with asynchronous scheduling: one runs, one waits for its token.
_RUN_AHEAD = 2


@dataclass(frozen=True, slots=True)
class Limits:
    """What a step may hold."""

    batched_tokens: int
    sequences: int
    model_length: int
    chunked: bool = True
    run_ahead: bool = False


@dataclass(frozen=True, slots=True)
class Output:
    """News of a request: a token, and `finish` (stop, length, abort) with the last one."""

    request: str
    sampled: Sampled | None
    finish: str | None
    cached: int


class Scheduler:
    """Decodes first, then prompts in pieces, then waiting requests, all within one budget of tokens.

    Steps may be scheduled before earlier ones have ended: pieces of one prompt follow each other directly, and
    with `run_ahead` a request decodes on while its last token is still being sampled. When blocks run out, the
    request that came last gives up its blocks and starts over later.
    """

    def __init__(self, limits: Limits, cache: KVCacheManager, hooks: Hooks) -> None:
        self.limits = limits
        self.cache = cache
        self.waiting: deque[Request] = deque()
        self.running: list[Request] = []
        self.preemptions = 0
        self._hooks = hooks
        self._requests: dict[str, Request] = {}
        self._finished: list[str] = []
        self._number = 0
        self._slots = list(range(limits.sequences - 1, -1, -1))
        self._in_flight: dict[int, list[tuple[str, int, int]]] = {}

    def add(self, new: NewRequest) -> None:
        """Queue a request. Its prompt is shorter than the model's length: the front end sees to that."""
        request = Request.of(new)
        self._requests[new.id] = request
        self.waiting.append(request)

    def abort(self, request_id: str) -> None:
        """Forget a request; unknown ones are fine, they have just ended."""
        request = self._requests.get(request_id)
        if request is not None:
            self._end(request)

    @property
    def busy(self) -> bool:
        """Whether any request is waiting or running."""
        return bool(self._requests)

    def schedule(self) -> Step | None:
        """The next step; None if nothing can be done before a step in flight has ended."""
        budget = self.limits.batched_tokens
        segments: list[Segment] = []
        preempted = False
        for request in self._by_urgency():
            if request not in self.running:
                continue  # it was preempted for one before it
            count = min(self._wanted(request), budget)
            if count <= 0:
                continue
            while not self.cache.extend(request, request.computed + count):
                preempted = True
                victim = self.running[-1]
                self._preempt(victim, segments)
                if victim is request:
                    break
            else:
                segments.append(self._segment(request, count))
                budget -= count
        if not preempted:
            budget = self._admit(budget, segments)
        segments.sort(key=lambda segment: not segment.decode)
        if not segments:
            return None
        mapping, unmapping = self.cache.pool.take_changes()
        step = Step(
            self._number,
            tuple(segments),
            mapping,
            unmapping,
            self.cache.take_zero(),
            tuple(self._finished),
        )
        self._finished.clear()
        self._in_flight[step.number] = [
            (one.request, one.generation, one.start + one.count) for one in segments
        ]
        self._number += 1
        return step

    def update(self, result: StepResult) -> list[Output]:
        """Take in what a step has sampled."""
        for request_id, generation, end in self._in_flight.pop(result.number):
            request = self._requests.get(request_id)
            if request is not None and request.generation == generation and request in self.running:
                self.cache.confirm(request, min(end, len(request.tokens)))
        outputs = []
        for sampled in result.sampled:
            request = self._requests.get(sampled.request)
            if request is None or request.generation != sampled.generation:
                continue
            request.tokens.append(sampled.token)
            request.placeholders -= 1
            finish = self._finish_reason(request, sampled.token)
            outputs.append(Output(request.id, sampled, finish, request.cached))
            if finish is not None:
                self._end(request)
        return outputs

    def _by_urgency(self) -> list[Request]:
        decodes = [one for one in self.running if one.computed >= len(one.new.prompt)]
        return decodes + [one for one in self.running if one.computed < len(one.new.prompt)]

    def _wanted(self, request: Request) -> int:
        """Tokens that a running request could take now."""
        remaining = request.remaining
        if request.placeholders == 0:
            return remaining
        if remaining <= 0 or not self.limits.run_ahead or request.placeholders >= _RUN_AHEAD:
            return 0
        # The answer may not grow past its end by steps that are scheduled blindly.
        total = request.outputs + request.placeholders
        return remaining if total < self._longest(request) else 0

    def _longest(self, request: Request) -> int:
        """Tokens that the answer may have."""
        return min(request.new.max_tokens, self.limits.model_length - len(request.new.prompt))

    def _admit(self, budget: int, segments: list[Segment]) -> int:
        while self.waiting and budget > 0 and len(self.running) < self.limits.sequences:
            request = self.waiting[0]
            if not self.limits.chunked and segments and request.remaining > budget:
                break
            count = self.cache.admit(request, budget)
            if count == 0:
                break
            self.waiting.popleft()
            self.running.append(request)
            request.slot = self._slots.pop()
            segments.append(self._segment(request, count))
            budget -= count
        return budget

    def _segment(self, request: Request, count: int) -> Segment:
        start, end = request.computed, request.computed + count
        states, cut = self.cache.rows(request, start, end)
        sample = end == len(request.tokens) + request.placeholders
        known = tuple(request.tokens[start:end])
        segment = Segment(
            request=request.id,
            slot=request.slot,
            tokens=known if len(known) == count else (),
            start=start,
            count=count,
            kv=tuple(tuple(table) for table in request.kv),
            states=states,
            decode=count == 1
            and start >= len(request.new.prompt)
            and not any(row.source != row.run for row in states),
            sample=sample,
            cut=cut,
            output=request.outputs + request.placeholders,
            generation=request.generation,
            feedback=-1 if len(known) == count else request.sampled_by,
            sampling=request.new.sampling,
        )
        request.computed = end
        if sample:
            request.placeholders += 1
            request.sampled_by = self._number
        left = self._longest(request) - request.outputs - request.placeholders
        self._hooks.scheduled(self.cache, request, left)
        return segment

    def _preempt(self, request: Request, segments: list[Segment]) -> None:
        segments[:] = [one for one in segments if one.request != request.id]
        self.cache.release(request)
        self.running.remove(request)
        self._slots.append(request.slot)
        request.computed = request.confirmed = request.registered = request.placeholders = 0
        request.generation += 1
        request.preemptions += 1
        self.preemptions += 1
        self.waiting.appendleft(request)

    def _finish_reason(self, request: Request, token: int) -> str | None:
        wanted = request.new
        if token in wanted.stop_tokens and not wanted.ignore_eos and request.outputs > wanted.min_tokens:
            return "stop"
        if request.outputs >= request.new.max_tokens or len(request.tokens) >= self.limits.model_length:
            return "length"
        return None

    def _end(self, request: Request) -> None:
        del self._requests[request.id]
        if request in self.running:
            self.running.remove(request)
            self._slots.append(request.slot)
            self.cache.release(request)
        else:
            self.waiting.remove(request)
        self._finished.append(request.id)
