"""A real language model behind both sides: each prompt is sent to it once, and has the same reply ever after."""

from __future__ import annotations

import hashlib
import json
import os
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.official.data import SPLITS, Finance
from tests.official.serving import Reply, role_of, spoken

SERVERS = "OFFICIAL_SERVER"
RECORDED = "OFFICIAL_REPLIES"
DATA = "OFFICIAL_DATA"
MAX_TOKENS = 64
_SECONDS = 600
_ID = r"(calc|err|misc)-0000[1-9]"


def _text(most: int) -> dict[str, Any]:
    return {"type": "string", "minLength": 1, "maxLength": most}


def _object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*properties], "additionalProperties": False}


def _list(of: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "array", "items": of, "minItems": 1, "maxItems": 1}


_NAMES = {"type": "string", "pattern": f"^{_ID}$"}
_SCHEMAS = {
    "generator": _object(
        reasoning={"type": "string", "pattern": rf"^I use \[{_ID}\][a-z0-9 ,.]{{5,25}}$"},
        bullet_ids=_list(_NAMES),
        final_answer=_text(12),
    ),
    "reflector": _object(
        key_insight=_text(40),
        bullet_tags=_list(_object(id=_NAMES, tag={"enum": ["helpful", "harmful", "neutral"]})),
    ),
    "curator": _object(
        reasoning=_text(20),
        operations=_list(
            _object(
                type={"enum": ["ADD"]},
                section={"enum": ["formulas_and_calculations", "common_mistakes_to_avoid", "others", "general"]},
                content={"type": "string", "pattern": "^[A-Z][a-z0-9 ,%]{15,40}$"},
            )
        ),
    ),
}
FINANCE_FORMS = {
    role: {"response_format": {"type": "json_object", "schema": schema}} for role, schema in _SCHEMAS.items()
}
"""What requests say to hold a small model to a role's form: without it hardly a reply of its changes the playbook."""
CHEATSHEET_FORMS = {
    "generator": {"grammar": 'root ::= [A-Za-z0-9 ,.]{10,60} "\\n<answer>\\n" [0-9.]{1,9} "\\n</answer>"'},
    "curator": {"grammar": 'root ::= "<cheatsheet>\\n" [A-Za-z0-9 ,.]{20,120} "\\n</cheatsheet>"'},
}


class RealReplies:
    """Replies of servers to the prompts of one task, each role's of a server of its own where there are several.

    Three prompts of four, drawn by the prompt, are answered in the role's form: the server holds the model to it, and
    neither side knows. ``recorded`` keeps the replies, so that a comparison that was stopped goes on where it was.
    """

    def __init__(
        self,
        openings: Mapping[str, str],
        forms: Mapping[str, Mapping[str, Any]],
        servers: Sequence[str],
        recorded: Path,
    ):
        self._openings = openings
        self._forms = forms
        self._servers = servers
        self._recorded = recorded
        self._replies: dict[str, Reply] = {}
        if recorded.exists():
            for line in recorded.read_text(encoding="utf-8").splitlines():
                known = json.loads(line)
                self._replies[known["prompt"]] = Reply(known["text"], known["ended"])

    def __call__(self, messages: Sequence[dict[str, str]]) -> Reply:
        prompt = spoken(messages)
        if prompt not in self._replies:
            reply = self._ask(prompt, messages)
            with self._recorded.open("a", encoding="utf-8") as file:
                file.write(json.dumps({"prompt": prompt, "text": reply.text, "ended": reply.ended}) + "\n")
            self._replies[prompt] = reply
        return self._replies[prompt]

    def __len__(self) -> int:
        return len(self._replies)

    def _ask(self, prompt: str, messages: Sequence[dict[str, str]]) -> Reply:
        role = role_of(self._openings, prompt)
        url = self._servers[[*self._openings].index(role) % len(self._servers)].rstrip("/")
        body: dict[str, Any] = {"messages": messages, "temperature": 0, "max_tokens": MAX_TOKENS}
        body["model"] = _json(f"{url}/models")["data"][0]["id"]
        if hashlib.sha256(prompt.encode()).digest()[0] % 4:
            body |= self._forms[role]
        choice = _json(f"{url}/chat/completions", body)["choices"][0]
        return Reply(choice["message"]["content"], choice["finish_reason"])


def _json(url: str, body: Mapping[str, Any] | None = None) -> Any:
    data = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=_SECONDS) as response:
        return json.load(response)


def servers() -> list[str]:
    """The addresses of servers of one model; without them, the test is skipped."""
    given = os.environ.get(SERVERS, "")
    if not given:
        pytest.skip(f"a real model is needed: {SERVERS}=http://localhost:8000/v1, or one address a role with commas")
    return given.split(",")


def recorded(folder: Path, name: str) -> Path:
    """Where the replies of a scenario are kept."""
    kept = Path(os.environ.get(RECORDED) or folder)
    kept.mkdir(parents=True, exist_ok=True)
    return kept / f"{name.replace(' ', '-')}.jsonl"


def real_rows(task: str, sizes: Mapping[str, int]) -> Finance:
    """Return the first rows of each split of FiNER or Formula; without the data, the test is skipped."""
    folder = Path(os.environ.get(DATA) or "data") / task
    if not folder.is_dir():
        pytest.skip(f"rows of {task} are needed: set {DATA} to a folder with {task}/train.jsonl, val.jsonl, test.jsonl")
    lines = {split: (folder / f"{split}.jsonl").read_text(encoding="utf-8").splitlines() for split in SPLITS}
    return Finance(task, {split: [*map(json.loads, lines[split][: sizes[split]])] for split in SPLITS})
