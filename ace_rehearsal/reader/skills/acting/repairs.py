"""What errors teach at once: a change to the code that failed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

FAILED = "Execution failed"
_KEY = re.compile(r"^KeyError: '(\w{1,60})'", re.MULTILINE)
_LOGIN = re.compile(r"apis\.(\w+)\.login\(")
_LAST_LINE = re.compile(r'File "<python-input>", line \d+, in .*\n(.*)')
_EXPRESSION = re.compile(r"^(?P<indent>[ ]*)(?P<call>apis\.(?!supervisor\.)\w+\.\w+\(.*\))$", re.MULTILINE)


@dataclass(frozen=True, kw_only=True)
class Repairs:
    """Fields that were not there, apps that refused a login, and whether an action was refused."""

    keys: tuple[str, ...] = ()
    logins: tuple[str, ...] = ()
    refused: bool = False

    def mended(self, code: str) -> str:
        """Return code that does not fail in these ways."""
        for key in self.keys:
            code = re.sub(rf"\b(\w+)\[([\"'])({key})\2\]", _other_key, code)
        for app in self.logins:
            code = re.sub(rf'(apis\.{app}\.login\(username=profile\[)(["\'])email\2', r"\1\2phone_number\2", code)
        return _EXPRESSION.sub(_forgiving, code) if self.refused else code


def repairs_for(failures: Sequence[str]) -> Repairs:
    """Read what failed outputs say."""
    lines = [_LAST_LINE.findall(output)[:1] for output in failures]
    logins = [_LOGIN.search(line) for found in lines for line in found]
    return Repairs(
        keys=tuple(dict.fromkeys(key[1] for output in failures if (key := _KEY.search(output)))),
        logins=tuple(dict.fromkeys(login[1] for login in logins if login)),
        refused=any("status code is 4" in output and "login(" not in output for output in failures),
    )


def _other_key(found: re.Match[str]) -> str:
    owner, quote, key = found.groups()
    other = f"{owner}_id" if key == "id" else "id" if key.endswith("_id") else key
    return f"{owner}[{quote}{other}{quote}]"


def _forgiving(found: re.Match[str]) -> str:
    indent, call = found["indent"], found["call"]
    return f"{indent}try:\n{indent}    {call}\n{indent}except Exception as error:\n{indent}    print(error)"
