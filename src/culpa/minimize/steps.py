"""The steps from a failing case to a small one; each goes on from where the last one ended, if the rate is held."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from culpa.engines.arguments import Grammar
from culpa.engines.base import EngineAdapter
from culpa.minimize import requests as ask
from culpa.minimize.case import Case
from culpa.minimize.launches import Part, free_to_go, keys_of, options_of, without
from culpa.minimize.meter import Meter
from culpa.minimize.numbers import Boundary, boundary
from culpa.model import Configuration, Factor, Finding
from culpa.probes import Probe, Request, request_factors, shaped
from culpa.reduction import Reduction, Step

T = TypeVar("T")

# What of a prompt may be left out costs a trial for each guess: so many at the most.
_MOST_GUESSES = 24
# Numbers of a request in the order in which they are made plainer, the dearest last.
_NUMBERS = ("max_tokens", "preceding_requests", "repeats", "concurrency", "prompt_tokens")


class Steps:
    """Makes a case smaller. `finding` names the factors that stay, `wrong_output` is true where the failure lies in
    the answers: then nothing may change what is asked for in them."""

    def __init__(self, adapter: EngineAdapter, meter: Meter, finding: Finding, *, wrong_output: bool) -> None:
        self._adapter = adapter
        self._meter = meter
        self._members = {member.name: member for member in finding.members}
        self._wrong_output = wrong_output
        self.thresholds: list[str] = []
        self.best: Case | None = None

    async def run(self, case: Case) -> Case:
        """All steps. `best` is always the smallest case whose rate was held so far, also if a limit ends it."""
        self.best = case
        for step in (
            self._options,
            self._keys,
            self._fields,
            self._requests,
            self._content,
            self._request_numbers,
            self._launch_numbers,
            self._model,
        ):
            smaller = await step(self.best)
            if smaller.key() != self.best.key() and await self._meter.held(smaller, step.__name__.strip("_")):
                self.best = smaller
        return self.best

    # -- the launch ----------------------------------------------------------------------------------------

    async def _options(self, case: Case) -> Case:
        """Flags and variables that do not matter go."""
        parts = options_of(case.launch, *self._reading(case))
        return await self._left_out(case, "options", parts)

    async def _keys(self, case: Case) -> Case:
        """And keys of JSON values."""
        return await self._left_out(case, "keys", keys_of(case.launch, *self._reading(case)))

    async def _left_out(self, case: Case, step: str, parts: Sequence[Part]) -> Case:
        parts = free_to_go(case.launch, parts, self._adapter.levels, tuple(self._members))

        def built(kept: Sequence[Part]) -> Case:
            return case.with_launch(without(case.launch, [part for part in parts if part not in kept]))

        return built(await self._smallest(step, parts, built, lambda part: part.text))

    async def _launch_numbers(self, case: Case) -> Case:
        """Numbers of the launch go to their thresholds."""
        for member in self._members.values():
            now = self._adapter.levels(case.launch).get(member.name, "")
            if not (now.isdigit() and member.safe.isdigit()) or now == member.safe:
                continue
            name = member.name

            def built(value: int, case: Case = case, name: str = name) -> Case:
                return case.with_launch(
                    self._adapter.apply(case.launch, Configuration.of({name: str(value)}))
                )

            found = await self._boundary(name, int(now), int(member.safe), built)
            case = built(found.failing)
        return case

    async def _model(self, case: Case) -> Case:
        """A smaller model, where the engine can make one of the same kind."""
        if self._wrong_output:
            return case  # its answers would be wrong in any case
        for text, launch in self._adapter.smaller_models(case.launch):
            candidate = case.with_launch(launch)
            if await self._meter.still_fails(candidate, "model", text):
                return candidate
        return case

    # -- the requests --------------------------------------------------------------------------------------

    async def _fields(self, case: Case) -> Case:
        """Fields of the requests go that do not matter."""
        probe = case.probe
        if probe is None:
            return case
        factors = [
            factor
            for factor in request_factors(probe)
            if not factor.numeric
            and not factor.instrument
            and factor.name not in self._members
            and factor.name != "order"
            and not (factor.name == "endpoint" and self._wrong_output)
        ]

        def built(kept: Sequence[Factor]) -> Case:
            plain = {factor.name: factor.safe[0] for factor in factors if factor not in kept}
            return case.with_probe(shaped(probe, Configuration.of(plain)))

        def shown(factor: Factor) -> str:
            return f"{factor.name} {factor.suspect} to {factor.safe[0]}"

        return built(await self._smallest("fields", factors, built, shown))

    async def _requests(self, case: Case) -> Case:
        """Requests go that the failure does not need, the one at which it showed last of all."""
        probe = case.probe
        if probe is None or len(ask.places(probe)) < 2:
            return case
        places = ask.places(probe)

        def built(kept: Sequence[ask.Place]) -> Case:
            return case.with_probe(ask.only(probe, kept))

        if await self._meter.still_fails(built(places[-1:]), "requests", "the last one alone"):
            case = built(places[-1:])
        else:
            left = await self._part("requests", places, built, lambda kept: f"{len(kept)} of {len(places)}")
            case = built(left)
        for text, plainer in ask.plainer_timing(case.probe or probe):
            candidate = case.with_probe(plainer)
            if await self._meter.still_fails(candidate, "requests", text):
                return candidate
        return case

    async def _content(self, case: Case) -> Case:
        """The longest prompt says less: one word again and again, else what delta debugging leaves of it."""
        if case.probe is None:
            return case
        probe = case.probe if self._wrong_output else ask.without_expectation(case.probe)
        place = ask.longest(probe)
        if place is None:
            return case
        request = probe.asked()[place.round][place.index]
        plain = ask.one_word_again_and_again(request)
        if plain is not None:
            candidate = case.with_probe(ask.with_request(probe, place, plain))
            if await self._meter.still_fails(candidate, "content", "one word again and again, as long"):
                return candidate

        def at(request: Request) -> Case:
            return case.with_probe(ask.with_request(probe, place, request))

        messages = ask.messages_of(request)
        if messages:
            kept = await self._smallest(
                "content",
                messages,
                lambda some: at(ask.with_messages(request, some)),
                lambda one: f"a message of the {one.get('role')}",
            )
            return at(ask.with_messages(request, kept))
        units = list(enumerate(ask.units_of(request)))
        if not units:
            return case

        def text(some: Sequence[tuple[int, str]]) -> Case:
            return at(ask.with_text(request, "".join(piece for _, piece in some)))

        left = await self._smallest("content", units, text, lambda unit: f"piece {unit[0] + 1}", at_least=1)
        return text(left) if len(left) < len(units) else case

    async def _request_numbers(self, case: Case) -> Case:
        """Numbers of the requests go to their thresholds."""
        for name in _NUMBERS:
            probe = case.probe
            if probe is None:
                return case
            factor = next((one for one in request_factors(probe) if one.name == name and one.numeric), None)
            if factor is None:
                continue

            def built(value: int, case: Case = case, probe: Probe = probe, name: str = name) -> Case:
                return case.with_probe(shaped(probe, Configuration.of({name: str(value)})))

            found = await self._boundary(name, int(factor.suspect), int(factor.safe[0]), built)
            if found.failing != int(factor.suspect):
                case = built(found.failing)
        return case

    # -- helpers -------------------------------------------------------------------------------------------

    def _reading(self, case: Case) -> tuple[int, Grammar]:
        return self._adapter.start_of_arguments(case.launch), self._adapter.grammar

    async def _smallest(
        self,
        step: str,
        items: Sequence[T],
        built: Callable[[Sequence[T]], Case],
        shown: Callable[[T], str],
        *,
        at_least: int = 0,
    ) -> tuple[T, ...]:
        """The items that the failure needs: none of them, most often, so that is tried first."""

        def text(kept: Sequence[T]) -> str:
            return f"without {', '.join(shown(item) for item in items if item not in kept)}"

        if not items or (at_least == 0 and await self._meter.still_fails(built(()), step, text(()))):
            return ()
        return await self._part(step, items, built, text)

    async def _part(
        self,
        step: str,
        items: Sequence[T],
        built: Callable[[Sequence[T]], Case],
        text: Callable[[Sequence[T]], str],
    ) -> tuple[T, ...]:
        """The smallest part of items that are known to fail together, within so many guesses."""
        if len(items) < 2:
            return tuple(items)
        reduction = Reduction(len(items), repeat=1)
        reduction.tell(Step(tuple(range(len(items))), "all", ""), True)
        for _ in range(_MOST_GUESSES):
            guess = reduction.next()
            if guess is None:
                break
            kept = [items[place] for place in guess.kept]
            # With nothing kept there is no case; that was tried before.
            failed = await self._meter.once(built(kept), step, text(kept)) if kept else None
            reduction.tell(guess, failed)
        return tuple(items[place] for place in reduction.result().kept) or tuple(items)

    async def _boundary(self, name: str, suspect: int, safe: int, built: Callable[[int], Case]) -> Boundary:
        async def fails(value: int) -> bool:
            return await self._meter.still_fails(built(value), "numbers", f"{name} at {value}")

        found = await boundary(name, suspect, safe, fails)
        if found.failing != safe:
            self.thresholds.append(found.sentence())
        return found


def control_of(
    adapter: EngineAdapter, case: Case, finding: Finding, impossible: Callable[[Configuration], str | None]
) -> tuple[str, Case] | None:
    """The same case with one member of the set made safe, in words and as a case: what a reader can lay beside it.

    A member of the launch if there is one, else one of the request; None where no such case can run.
    """
    for member in finding.members:
        levels = Configuration.of({member.name: member.safe})
        text = f"{member.name} {member.suspect} → {member.safe}"
        if member.name in adapter.levels(case.launch):
            if (
                impossible(Configuration.of({**adapter.levels(case.launch), member.name: member.safe}))
                is None
            ):
                return text, case.with_launch(adapter.apply(case.launch, levels))
        elif case.probe is not None:
            changed = shaped(case.probe, levels)
            if case.with_probe(changed).key() != case.key():
                return text, case.with_probe(changed)
    return None
