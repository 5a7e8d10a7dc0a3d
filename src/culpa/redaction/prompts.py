"""What users asked and were answered, where a log prints it: behind names that engines give to it."""

from collections.abc import Iterator

from culpa.redaction.table import compiled

_NAMES = (
    "prompt|prompts|messages|content|output|query|question|instruction|instructions|system_prompt|input_text|output_text"
    "|generated_text|completion|prompt_token_ids|input_ids|output_ids|token_ids|all_token_ids|output_token_ids"
)
# vLLM: prompt: '...', prompt_token_ids: [...]; SGLang: text='...', input_ids=[...]; llama.cpp: "prompt": "..."
_HEAD = compiled(
    rf"""(?:^|[^A-Za-z0-9_-])(?:(?:{_NAMES})\\?['"]?[ \t]*[:=][ \t]*(?:ChatPrompt\(|)|text=)(\\?['"\[])"""
)
_CLOSERS = {"[": "]", "{": "}", "(": ")"}
_LEAST = 2


def prompts_in(text: str, raw: bytes) -> Iterator[tuple[int, int]]:
    """The places of prompts and answers in a log, with their quotes left standing. `raw` is the text in Latin-1."""
    behind = 0
    for match in _HEAD.finditer(raw):
        start = match.end(1)
        if start < behind:
            continue
        opener = text[match.end(1) - 1]
        escaped = text[match.start(1)] == "\\"
        end = (
            _closing_bracket(text, start, opener)
            if opener in _CLOSERS
            else _closing(text, start, opener, escaped)
        )
        if (end - start >= _LEAST and not text.startswith("[", start)) or (
            opener == "[" and end - start >= _LEAST
        ):
            yield start, end
        behind = end


def _closing(text: str, start: int, quote: str, escaped: bool) -> int:
    """The place of the quote that ends the text; the end of its line where there is none."""
    position = start
    while position < len(text):
        one = text[position]
        if one == "\n":
            return position
        if one == "\\" and not escaped:
            position += 2
            continue
        if one == quote:
            return position - 1 if escaped and text[position - 1] == "\\" else position
        position += 1
    return len(text)


def _closing_bracket(text: str, start: int, opener: str) -> int:
    depth, position, quote = 1, start, ""
    closers = {opener: 1, _CLOSERS[opener]: -1}
    while position < len(text):
        one = text[position]
        if one == "\n":
            return position
        if one == "\\":
            position += 2
            continue
        if quote:
            quote = "" if one == quote else quote
        elif one in "'\"":
            quote = one
        else:
            depth += closers.get(one, 0)
            if depth == 0:
                return position
        position += 1
    return len(text)
