"""Text that may be shown: secrets taken out, and nothing in it that a terminal would act upon. Pure."""

import re

REDACTED = "[redacted]"

_NOT_YET = r"(?!\[redacted\])"
# One word of a POSIX shell: quoted and bare pieces without a blank between them.
_SHELL_WORD = r"""(?:'[^'\n]*'|"(?:[^"\\\n]|\\.)*"|[^\s'"])+"""
# A value in a printed mapping or assignment: quoted, or up to what ends a bare one.
_VALUE = r"""(?:'[^'\n]*'|"(?:[^"\\\n]|\\.)*"|[^\s,;&(){}\[\]'"]+)"""
# Names of secrets, in any case. A bare "token" is not one of them: it is the most common word of this field.
_SECRET_NAME = (
    r"(?:[a-z0-9]+[_-])*(?:api[_-]?keys?|apikey|secret(?:[_-]?(?:access[_-])?key)?|client[_-]secret"
    r"|password|passwd|passphrase|credentials?|private[_-]key|access[_-]key(?:[_-]id)?"
    r"|x-amz-(?:signature|credential)"
    r"|(?:hf|hub|hugging[_-]?face|access|auth|api|bearer|refresh|session|security|github|gitlab|gh|wandb|bot"
    r"|login|user|id|jwt|csrf|pypi|npm)[_-]token)"
)

_RULES: tuple[tuple[re.Pattern[str], str], ...] = (
    (
        re.compile(r"-----BEGIN ([A-Z ]{0,40})PRIVATE KEY-----.*?(?:-----END \1PRIVATE KEY-----|\Z)", re.S),
        REDACTED,
    ),
    # user:password@ in a URL, and user tokens without a password (https://TOKEN@host).
    (re.compile(rf"(\b[a-z][a-z0-9+.-]{{0,20}}://){_NOT_YET}[^\s/@'\"]{{1,512}}@", re.I), rf"\1{REDACTED}@"),
    # Tokens that show what they are by their shape.
    (
        re.compile(
            r"(?<![A-Za-z0-9])(?:hf_(?=[a-z]*[A-Z0-9])[A-Za-z0-9]{16,}|api_org_[A-Za-z0-9]{8,}|sk-[A-Za-z0-9_-]{16,}"
            r"|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,}|glpat-[A-Za-z0-9_-]{16,}"
            r"|xox[abeprs]-[A-Za-z0-9-]{8,}|nvapi-[A-Za-z0-9_-]{16,}|r8_[A-Za-z0-9]{16,}|gsk_[A-Za-z0-9]{16,}"
            r"|A[KS]IA[0-9A-Z]{16}|AIza[A-Za-z0-9_-]{30,}|pypi-[A-Za-z0-9_-]{32,}|npm_[A-Za-z0-9]{32,}"
            r"|eyJ[A-Za-z0-9_-]{8,}\.eyJ[A-Za-z0-9_-]{8,}(?:\.[A-Za-z0-9_-]*)?)"
        ),
        REDACTED,
    ),
    (
        re.compile(
            rf"\b(authorization['\"]?\s*[:=]\s*['\"]?(?:(?:bearer|basic|token|digest)\s+)?){_NOT_YET}"
            r"(?!(?:bearer|basic|token|digest)\s)[^\s'\",;]+",
            re.I,
        ),
        rf"\1{REDACTED}",
    ),
    (
        re.compile(
            rf"\b(bearer\s+){_NOT_YET}(?!(?:authentication|authorization|tokens?)\b)[A-Za-z0-9._~+/=-]{{8,}}",
            re.I,
        ),
        rf"\1{REDACTED}",
    ),
    # Flags, as words of a command line (--api-key VALUE, --api-key=VALUE). vLLM takes several keys after one
    # flag: further words go as well where they look like keys and not like prose.
    (
        re.compile(
            rf"(?<![\w-])(--?(?:{_SECRET_NAME}|token))(=|[ \t]+)(?!-){_NOT_YET}"
            rf"(?!(?:is|was|must|and|or|not)\s){_SHELL_WORD}"
            rf"(?:[ \t]+(?!-){_NOT_YET}(?=[^\s]*[0-9])[A-Za-z0-9_.~+/=-]{{8,}}(?=\s|$))*",
            re.I,
        ),
        rf"\1\2{REDACTED}",
    ),
    # The same as items of a printed list: '--api-key', 'VALUE'.
    (
        re.compile(rf"(['\"]--?(?:{_SECRET_NAME}|token)['\"]\s*,\s*)(['\"]){_NOT_YET}[^'\"\n]*\2", re.I),
        rf"\1\2{REDACTED}\2",
    ),
    # Printed lists: 'api_key': ['VALUE', ...].
    (
        re.compile(
            rf"(?<![\w-])({_SECRET_NAME}['\"]?\s*[:=]\s*)\[{_NOT_YET}(?!redacted\])[^\[\]\n]+\]", re.I
        ),
        rf"\1{REDACTED}",
    ),
    # Assignments and mappings: HF_TOKEN=VALUE, api_key='VALUE', "password": "VALUE", ?api_key=VALUE&...
    (
        re.compile(
            rf"(?<![\w-])({_SECRET_NAME}['\"]?\s*[:=]\s*){_NOT_YET}"
            rf"(?!(?:none|null|true|false)\b|['\"]{{2}}){_VALUE}",
            re.I,
        ),
        rf"\1{REDACTED}",
    ),
    # Variables whose name says token (upper case only), and a bare token= with something that looks like one.
    (
        re.compile(
            rf"(?<![\w-])((?!(?:[A-Z]+_)*(?:EOS|BOS|PAD|UNK|MAX|MIN|STOP|MASK|SEP|CLS)_TOKEN)[A-Z0-9_]*_TOKEN=)"
            rf"{_NOT_YET}(?![0-9]{{1,9}}\b){_VALUE}"
        ),
        rf"\1{REDACTED}",
    ),
    (
        re.compile(
            r"(?<![\w-])((?:token|sig|signature)['\"]?\s*[:=]\s*['\"]?)"
            r"(?=[A-Za-z0-9_%+/-]*[A-Za-z])(?=[A-Za-z_%+/-]*[0-9])[A-Za-z0-9_%+/-]{16,}={0,2}",
            re.I,
        ),
        rf"\1{REDACTED}",
    ),
)

# ECMA-48: control sequences (CSI), strings with a terminator (OSC, DCS, SOS, PM, APC), other escapes.
_ESCAPES = re.compile(
    r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]"
    r"|(?:\x1b[\]PX^_]|[\x9d\x90\x98\x9e\x9f])[^\x07\x1b\x9c]*(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-Z\\^-~]"
)
# C0 but for tab and line feed, DEL, C1; zero-width and direction marks that reorder or hide what is shown;
# line and paragraph separators; lone surrogates, which no encoding of the output can carry.
_CONTROLS = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b\u200e\u200f\u2028\u2029\u202a-\u202e\u2060-\u2069\ufeff\ud800-\udfff]"
)


def redact(text: str) -> str:
    """The text with API keys, tokens and passwords replaced by `[redacted]`.

    Secrets are known by their shape (`hf_...`, `sk-...`, `Bearer ...`) or by the name in front of them
    (`--api-key VALUE`, `HF_TOKEN=VALUE`, `"password": "VALUE"`, `user:password@` in a URL). Applying it twice
    changes nothing more. A secret without shape or name can't be known.
    """
    for pattern, replacement in _RULES:
        text = pattern.sub(replacement, text)
    return text


def printable(text: str) -> str:
    """The text without terminal escapes and control characters; tabs and line feeds stay.

    A carriage return becomes a line feed. Marks that reorder or hide text (bidirectional controls, zero-width
    spaces) go too. The result can be written to any UTF-8 stream.
    """
    text = _ESCAPES.sub("", text)
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    return _CONTROLS.sub("", text)
