"""Any command that serves an OpenAI-compatible endpoint, with its factors from a user's TOML file."""

import re
from pathlib import Path
from typing import TYPE_CHECKING

from culpa.engines.arguments import mentions
from culpa.engines.base import CatalogueAdapter, Prepared, Reading
from culpa.engines.command import check_programs, first_program
from culpa.engines.errors import BadLaunch
from culpa.engines.tables import PortPlace
from culpa.model import Launch

if TYPE_CHECKING:
    from culpa.host import Machine

PLACEHOLDER = "{port}"


class GenericAdapter(CatalogueAdapter):
    """An engine that a factors file describes."""

    def recognises(self, launch: Launch) -> bool:
        """Always: the user says what the engine is."""
        return True

    def start_of_arguments(self, launch: Launch) -> int:
        """Behind the program, which is looked for through known wrappers."""
        return first_program(launch.argv).arguments

    def read(self, launch: Launch, machine: "Machine") -> Reading:
        """As the file says. Raises BadLaunch for a program that is not there, or a port that has no place."""
        check_programs(launch, first_program(launch.argv), self.surrounding)
        self._port_place(launch)
        return super().read(launch, machine)

    def wanted_port(self, launch: Launch) -> int | None:
        """The port that the command or its variables fix; none where `{port}` stands."""
        place = self._port_place(launch)
        if place is None:
            return None
        if place.flag is not None:
            context = self.context(launch)
            found = mentions(launch.argv, context.start, self.grammar, valued=[place.flag])
            value = found[-1].value if found else None
        else:
            value = launch.variable(place.env or "")
        return int(value) if value is not None and re.fullmatch(r"\d{1,5}", value) else None

    def prepare(self, launch: Launch, port: int, scratch: Path) -> Prepared:
        """The launch on that port, on 127.0.0.1 where the file says how, with the file's instrumentation."""
        launch = self.on_port(launch, str(port))
        engine = self.catalogue.engine
        for switch in engine.instrumentation:
            launch = self.with_switch(launch, switch)
        return Prepared(launch, f"http://127.0.0.1:{port}", engine.health)

    def on_port(self, launch: Launch, port: str) -> Launch:
        """The port where the file says or where `{port}` stands, and 127.0.0.1 where the file says how."""
        engine = self.catalogue.engine
        place = self._port_place(launch)
        if place is None:
            launch = Launch(
                argv=tuple(word.replace(PLACEHOLDER, port) for word in launch.argv),
                env=tuple((name, value and value.replace(PLACEHOLDER, port)) for name, value in launch.env),
                cwd=launch.cwd,
            )
        else:
            launch = self.set_place(place, launch, port)
        return launch if engine.host is None else self.set_place(engine.host, launch, "127.0.0.1")

    def _port_place(self, launch: Launch) -> PortPlace | None:
        """Where the port goes; None means that the placeholder does."""
        if self.catalogue.engine.port is not None:
            return self.catalogue.engine.port
        values = [value for _, value in launch.env if value is not None]
        if any(PLACEHOLDER in word for word in (*launch.argv, *values)):
            return None
        start = self.start_of_arguments(launch)
        if mentions(launch.argv, start, self.grammar, valued=["--port"]):
            return PortPlace(flag="--port")
        raise BadLaunch(
            f"{launch.argv[0]}: nothing says where the engine takes its port: put {PLACEHOLDER} into the "
            f'command, or port = {{ flag = "--port" }} into [engine] of {self.catalogue.origin}'
        )
