"""The certificate of a run: which of its settings and requests equal the authors' code, by its own records.

What their code does not say is unknown and never counts as equal. docs/fidelity.md tells each point.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from itertools import chain
from pathlib import Path
from typing import Any

import msgspec

from ace_bench.core.encoding import convert, decoder_of
from ace_bench.core.errors import StoreError
from ace_bench.core.identity import fixed_settings
from ace_bench.core.replies import RETRY_START, is_offer
from ace_bench.core.types import Record, Stage
from ace_bench.store.authors_code import UNKNOWN, is_at
from ace_bench.store.call_log import FILE
from ace_bench.store.calls import StoredRequest
from ace_bench.store.lines import read_lines
from ace_bench.store.requests import Spans
from ace_bench.store.results import read_settings

_PROMPTS, _PROTOCOL = "prompts", "protocol"
_SHOWN = 5
"""Switches that a line names; all are in ``metrics.json``."""


class AuthorsChoices(msgspec.Struct, frozen=True, kw_only=True):
    """The choices of an authors' repository for some tasks. ``authors_choices.yaml`` documents the fields."""

    name: str
    tasks: tuple[str, ...]
    method: str
    loop: str
    settings: Mapping[str, Sequence[Any]]
    by_mode: Mapping[str, Mapping[str, Sequence[Any]]]
    built_in: Mapping[str, Sequence[Any]]
    sent: Mapping[str, Any]
    repeats: bool


@cache
def _choices() -> tuple[AuthorsChoices, ...]:
    text = (files(__package__) / "authors_choices.yaml").read_bytes()
    choices: tuple[AuthorsChoices, ...] = convert(msgspec.yaml.decode(text), tuple[AuthorsChoices, ...])
    return choices


def certify(folder: Path, metrics: Record) -> Record:
    """Return the certificate of a run with these metrics, by its settings, calls and journal; raises ``StoreError``.

    ``code`` is the repository compared with, ``None`` if the authors published none for the task and method: then no
    switch is compared. Of the ``switches`` ``equal`` are as theirs, ``differs`` holds ours and theirs by path, and
    ``unknown`` names those that cannot be compared. Of ``requests``, ``compared`` were sent to a server, ``differs``
    counts the calls by the field that is not as theirs (without a code: by the field that is sent), ``asked_again``
    replies by why they were asked for once more, and ``repeats_sent_once`` prompts that the authors' code sends again.
    """
    task, method = metrics["task"], metrics["method"]
    code = next((choice for choice in _choices() if task in choice.tasks and method == choice.method), None)
    calls = _read_calls(folder)
    if not calls and any(map(sum, (roles.values() for roles in metrics["calls"].values()))):
        raise StoreError(f"{folder / FILE} is missing; restore it")
    requests = {
        "calls": len(calls),
        "compared": sum(call.fields is not None for call in calls),
        "differs": dict(sorted(Counter(chain.from_iterable(_differing_fields(call, code) for call in calls)).items())),
        "asked_again": {
            "empty": sum(call.asked_again for call in calls),
            "unreadable": sum(call.retry for call in calls),
        },
        "repeats_sent_once": _repeats(folder, metrics) if code is not None and code.repeats else 0,
    }
    if code is None:
        return {"code": None, "requests": requests}
    return {"code": code.name, **_switches(read_settings(folder), metrics, code), "requests": requests}


def _switches(settings: Record, metrics: Record, code: AuthorsChoices) -> Record:
    follows = str(settings["method"].get("_target_", "")).endswith(f".{code.loop}")
    wanted = {**code.settings, **code.by_mode.get(metrics["mode"], {}), **code.built_in}
    fixed = fixed_settings(settings)
    differs: dict[str, Any] = {} if follows else {_PROTOCOL: {"ours": "our loop", "theirs": "official"}}
    for path, their_value in wanted.items():
        if follows and path in code.built_in:
            continue
        our_value = _lookup(settings, path)
        our_value = fixed.get(path) if our_value is None else our_value
        if our_value not in their_value:
            differs[path] = {"ours": our_value, "theirs": their_value[0]}
    repository, _, followed = code.name.partition("@")
    imported = metrics.get(_PROMPTS, {}).get("sources", {}).get(repository, UNKNOWN)
    prompt_set = "default" if settings[_PROMPTS] == "default" else imported
    unknown = [_PROMPTS] if prompt_set == UNKNOWN else []
    if not unknown and not is_at(prompt_set, followed):
        differs[_PROMPTS] = {"ours": prompt_set, "theirs": "imported" if prompt_set == "default" else followed}
    total = len(wanted) + 2  # with the loop and the prompts
    return {"switches": total, "equal": total - len(differs) - len(unknown), "differs": differs, "unknown": unknown}


def _lookup(settings: Any, path: str) -> Any:
    for key in path.split("."):
        settings = settings.get(key) if isinstance(settings, Mapping) else None
    return settings


class _Line(msgspec.Struct):
    id: str
    role: str
    request: StoredRequest
    asked_again: int = 0


class _Call(msgspec.Struct, frozen=True, kw_only=True):
    """A call: the fields that its request held besides model and messages, ``None`` if nothing was sent.

    ``retry``: it asks once more because a reply could not be read.
    """

    fields: Mapping[str, Any] | None
    asked_again: int = 0
    retry: bool = False


def _read_calls(folder: Path) -> list[_Call]:
    """Read the calls, each once: of a call that was asked again because of an outage, the last line counts.

    Later calls refer by digest to the settings and schema of earlier requests, and to the message that asks once more.
    """
    heads: dict[str, Mapping[str, Any]] = {}
    retries: dict[str, int] = {}

    def parse(line: bytes) -> tuple[str, _Call]:
        record: _Line = decoder_of(_Line).decode(line)
        digest, request = record.id.rpartition("/")[0].rpartition("/")[2], record.request
        base, last = request.base or "", len(request.messages) - 1
        heads[digest] = {**heads.get(base, {}), **(request.head or {})}
        retry = last > 0 and _is_retry(request.messages[last][1], repeated=retries.get(base) == last)
        if retry:
            retries[digest] = last
        fields = _fields_of(heads[digest], record.role)
        return record.id, _Call(fields=fields, asked_again=record.asked_again, retry=retry)

    return [*dict(read_lines(folder / FILE, parse).check().entries).values()]


def _is_retry(spans: Spans, *, repeated: bool) -> bool:
    """Whether a message asks once more; ``repeated``: so does the one whose text it takes."""
    first = spans[0] if spans else ""
    if isinstance(first, str):
        return first.startswith(RETRY_START)
    start, length = first
    return repeated and start == 0 and length >= len(RETRY_START)


def _fields_of(head: Mapping[str, Any], role: str) -> Mapping[str, Any] | None:
    """Return the fields of a request; ``None`` for a backbone that sends none, such as the embedded reader."""
    settings = head.get("settings", {})
    sampling = settings.get("sampling")
    if sampling is None:
        return None
    role_values = {
        name: value for name, value in (sampling.get("roles", {}).get(role) or {}).items() if value is not None
    }
    values = {name: role_values.get(name, sampling.get(name)) for name in ("temperature", "max_tokens", "top_p")}
    schema = head.get("schema")
    asks = schema is not None and not is_offer(schema) and settings.get("structured") != "none"
    return {
        **{name: value for name, value in values.items() if value is not None},
        **({"seed": True} if sampling.get("seeded") else {}),
        **({"response_format": True} if asks else {}),
        **(settings.get("extra_body") or {}),
    }


def _differing_fields(call: _Call, code: AuthorsChoices | None) -> Iterator[str]:
    """Yield the fields of a request that are not the authors'; without a code, the fields that it holds."""
    if call.fields is None:
        return
    if code is None:
        yield from call.fields
        return
    for name in {*call.fields, *code.sent}:
        if call.fields.get(name) != code.sent.get(name):
            yield name


class _Rollout(msgspec.Struct):
    kind: str
    stage: str = ""
    split: str = ""
    sample: str = ""
    trial: int = 0


def _repeats(folder: Path, metrics: Record) -> int:
    """Return how many attempts at the same sample under the same context were made once and used again."""
    lines = read_lines(folder / "journal.jsonl", decoder_of(_Rollout).decode).check().entries
    first_rollouts = [line for line in lines if line.kind == "rollout" and line.trial == 0]
    tested: int = metrics["headline"]["n"]
    online = metrics["mode"] == "online"
    stage = Stage.ADAPT if online else Stage.EVALUATE
    stage_rollouts = [line for line in first_rollouts if line.stage == stage]
    if online:
        expected: int = 2 * metrics["steps"]  # each sample is predicted, then learnt from
    else:
        validation = {line.sample for line in stage_rollouts if line.split == "val"} if metrics["validation"] else set()
        expected = tested * (2 if metrics["headline"]["before"] is not None else 1)
        expected += len(validation) * len(metrics["validation"])
    return max(0, expected - len(stage_rollouts))


def certificate_text(certificates: Sequence[Record], *, simulated: bool) -> str:
    """Say in one or two lines which switches and requests of some runs are as the authors'."""
    by_code: dict[str, list[Record]] = {}
    for certificate in certificates:
        by_code.setdefault(certificate["code"] or "", []).append(certificate)
    unknown = len(by_code.pop("", ()))
    parts = [_switches_in_words(code, code_certificates) for code, code_certificates in by_code.items()]
    if unknown:
        runs = f" for {unknown} of {len(certificates)} runs" if by_code else ""
        parts.append(f"unknown{runs}, as the authors published no code for the task and method")
    caveat = " (stand-ins answered: this says nothing of their replies)" * simulated
    return f"{'; '.join(parts)}. Requests: {_requests_in_words(certificates)}{caveat}"


def _switches_in_words(code: str, certificates: Sequence[Record]) -> str:
    equal = sorted({certificate["equal"] for certificate in certificates})
    changes = dict.fromkeys(
        f"{path}={_word(change['ours'])} ({_word(change['theirs'])})"
        for certificate in certificates
        for path, change in certificate["differs"].items()
    )
    first_changes, hidden = [*changes][:_SHOWN], len(changes) - _SHOWN
    unknown = dict.fromkeys(chain.from_iterable(certificate["unknown"] for certificate in certificates))
    span = " to ".join(map(str, dict.fromkeys((equal[0], equal[-1]))))
    rest_text = f", {hidden} more in metrics.json" * (hidden > 0)
    parts = [f"{span} of {certificates[0]['switches']} switches ({code})"]
    parts += [f"differs (theirs): {', '.join(first_changes)}{rest_text}"] if first_changes else []
    parts += [f"unknown: {', '.join(unknown)}"] if unknown else []
    return "; ".join(parts)


def _requests_in_words(certificates: Sequence[Record]) -> str:
    """Say how many requests hold other fields than the authors', were asked again, or were not sent again."""
    counts = Counter[str]()
    for certificate in certificates:
        requests, verb = certificate["requests"], "is sent" if certificate["code"] is None else "differs"
        counts["sent"] += requests["compared"]
        counts.update({f"where {name} {verb}": count for name, count in requests["differs"].items()})
        counts.update({f"{kind} replies asked for again": count for kind, count in requests["asked_again"].items()})
        counts["repeats sent once"] += requests["repeats_sent_once"]
    if not counts["sent"]:
        return "none was sent to a server"
    return ", ".join(f"{count:,} {description}" for description, count in counts.items() if count)


def _word(value: Any) -> str:
    return {"None": "null", "True": "true", "False": "false"}.get(str(value), str(value))
