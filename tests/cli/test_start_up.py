"""`culpa --help` answers at once: nothing heavy is imported for it."""

import subprocess
import sys

HEAVY = ("numpy", "scipy", "httpx2", "jinja2", "pydantic", "rich.live", "asyncio")


def test_command_line_imports_nothing_heavy() -> None:
    script = f"import sys, culpa.cli; print([name for name in {HEAVY!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
