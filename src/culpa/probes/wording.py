"""How requests and answers are quoted in evidence: short, escaped, with their numbers."""

from collections.abc import Sequence

from culpa.probes.answer import Answer
from culpa.probes.request import Request

_LONGEST_QUOTE = 80
_MOST_QUOTES = 3


def asked(request: Request, times: int = 1) -> str:
    """What was asked, how often and how: `asked 'What is 2+2?' 3 times at temperature 0`."""
    text = request.question
    words = [f"asked {quoted(text)}" if text else f"asked {request.endpoint}"]
    if len(text) > _LONGEST_QUOTE:
        words.append(f"({len(text)} characters)")
    if times > 1:
        words.append(f"{times} times")
    if request.body.get("temperature") == 0:
        words.append("at temperature 0")
    return " ".join(words)


def got(answers: Sequence[Answer]) -> str:
    """What came back, different answers side by side: `'!!!!' (finish_reason length)`."""
    texts = list(dict.fromkeys(_got(answer) for answer in answers))
    more = f" and {len(texts) - _MOST_QUOTES} other answers" if len(texts) > _MOST_QUOTES else ""
    return ", ".join(texts[:_MOST_QUOTES]) + more


def failure(answer: Answer) -> str:
    """Why there is no answer, in the engine's or the transport's words."""
    after = f" after {answer.seconds:.1f} s"
    match answer.failure:
        case "http_error":
            return f"HTTP {answer.status}{after}: {answer.error}"
        case "not_connected":
            return f"no connection{after} ({answer.error})"
        case "malformed":
            return f"unreadable answer{after}: {answer.error}"
        case _:
            came = f"; {quoted(answer.text)} had come" if answer.text else ""
            return f"the connection was lost{after} ({answer.error}){came}"


def quoted(text: str) -> str:
    """The text in quotes, its middle left out if it is long: a question stands at the end of its prompt."""
    half = _LONGEST_QUOTE // 2
    return repr(text if len(text) <= _LONGEST_QUOTE else f"{text[:half]} ... {text[-half:]}")


def _got(answer: Answer) -> str:
    if answer.embedding:
        return f"{len(answer.embedding)} numbers"
    text = quoted(answer.text)
    if answer.tool_calls:
        text += f" and {len(answer.tool_calls)} tool calls"
    return f"{text} (finish_reason {answer.finish_reason})"
