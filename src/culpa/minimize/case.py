"""What is made smaller: a launch, and the requests that make it fail."""

import hashlib
import json
from dataclasses import dataclass, replace

from culpa.model import Launch
from culpa.model.minimization import Size
from culpa.probes import Probe
from culpa.probes.request import estimated_prompt_tokens


@dataclass(frozen=True, slots=True)
class Case:
    """One reproduction. `probe` is None where the launch fails before any request."""

    launch: Launch
    probe: Probe | None

    def with_launch(self, launch: Launch) -> "Case":
        return replace(self, launch=launch)

    def with_probe(self, probe: Probe) -> "Case":
        return replace(self, probe=probe)

    def key(self) -> str:
        """Identifies the case: equal launches that are asked the same, equal keys."""
        rounds = []
        if self.probe is not None:
            rounds = [[f"{one.canonical()} {one.span}" for one in each] for each in self.probe.asked()]
            rounds.append([str(len(self.probe.preceding))])
        text = json.dumps([self.launch.argv, self.launch.env, self.launch.cwd, rounds])
        return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:20]

    def size(self) -> Size:
        """How much there is of it."""
        requests = self.probe.requests() if self.probe is not None else ()
        per_character = self.probe.tokens_per_character if self.probe is not None else 1.0
        tokens = [estimated_prompt_tokens(request.body, per_character) for request in requests]
        return Size(
            words=len(self.launch.argv),
            variables=len(self.launch.env),
            requests=len(requests),
            prompt_tokens=max(tokens, default=0),
        )
