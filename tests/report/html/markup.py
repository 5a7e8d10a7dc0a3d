"""A strict reading of a page: every element closed in its order, what it refers to, the text that it shows."""

from html.parser import HTMLParser

_VOID = frozenset({"meta", "br", "col", "hr", "img", "input", "link"})


class Reading(HTMLParser):
    """Elements with their attributes, the text, and what is wrong with the nesting."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str]]] = []
        self.text: list[str] = []
        self.faults: list[str] = []
        self._open: list[str] = []
        self.feed(page)
        self.close()
        self.faults += [f"<{name}> is never closed" for name in self._open]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))
        if tag not in _VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        if not self._open or self._open[-1] != tag:
            self.faults.append(f"</{tag}> at line {self.getpos()[0]} closes {self._open[-1:]}")
        else:
            self._open.pop()

    def handle_data(self, data: str) -> None:
        if not {"style", "script"} & set(self._open):
            self.text.append(data)

    @property
    def shown(self) -> str:
        """All text, in one piece."""
        return "".join(self.text)

    def named(self, tag: str) -> list[dict[str, str]]:
        """The attributes of all elements of that name."""
        return [attributes for name, attributes in self.elements if name == tag]

    def ids(self) -> list[str]:
        """All ids, in order."""
        return [attributes["id"] for _, attributes in self.elements if "id" in attributes]
