"""The shapes that replies of models take: well-formed ones, and what the two sides must read alike all the same."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

Fields = Mapping[str, Any]

CLEAN = ("plain", "fenced")


def _dump(value: object) -> str:
    return json.dumps(value, indent=2)


def _without(fields: Fields, name: str) -> str:
    return _dump({key: value for key, value in fields.items() if key != name})


def _quoted_inside(fields: Fields) -> str:
    return _dump({**fields, "reasoning": "MARK"}).replace("MARK", 'we call it "net" here')


def common(fields: Fields, other: Fields) -> dict[str, str]:
    """Any role's reply with ``fields``, and with ``other`` fields beside them where a shape has two."""
    text, draft = _dump(fields), _dump(other)
    return {
        "plain": text,
        "fenced": f"```json\n{text}\n```",
        "fenced without a name": f"```\n{text}\n```",
        "two fences": f"```json\n{{broken\n```\nAgain:\n```json\n{text}\n```",
        "upper-case fence": f"```JSON\n{text}\n```",
        "words around": f"Here is my reply.\n{text}\nThat is all.",
        "words with braces before": f"We use {{x}} and {{}} first.\n{text}",
        "one line": json.dumps(fields),
        "blanks around": f"\n\n  {text} \n\n",
        "trailing comma": text[: text.rindex("\n")] + ",\n}",
        "single quotes": repr(dict(fields)),
        "draft in think tags": f"<think>{draft}</think>\n{text}",
        "only in think tags": f"<think>{text}</think>",
        "think tags left open": f"<think>{draft}\n{text}",
        "second object": f"{text}\n{draft}",
        "list": json.dumps([dict(fields)]),
        "nested": _dump({"output": dict(fields)}),
        "encoded twice": json.dumps(text),
        "null": "null",
        "empty": "",
        "only blanks": "  \n",
        "only words": "I cannot decide on this one.",
        "cut in the middle": text[: len(text) * 2 // 3],
        "cut before the end": text[:-2],
        "invalid escape": text.replace('"reasoning": "', '"reasoning": "area \\(a\\) and '),
        "raw line break in a string": text.replace('"reasoning": "', '"reasoning": "first\nthen '),
        "unescaped quotes": _quoted_inside(fields),
        "comment": text.replace("{", "{ // as asked", 1),
        "NaN": _dump({**fields, "score": float("nan")}),
        "key twice": text[:-2] + f',\n  "reasoning": "once more",\n{draft[1:]}',
        "without reasoning": _without(fields, "reasoning"),
        "reasoning as list": _dump({**fields, "reasoning": ["one", "two"]}),
        "reasoning as object": _dump({**fields, "reasoning": {"one": [1, 2]}}),
        "reasoning null": _dump({**fields, "reasoning": None}),
        "further fields": _dump({"note": {"final": [1]}, **fields, "confidence": 0.5}),
        "other letters": json.dumps({**fields, "reasoning": "naïve Größe – 10 € \u2028 ok"}, ensure_ascii=False),
        "byte order mark": "\ufeff" + text,
    }


def generator(fields: Fields, other: Fields) -> dict[str, str]:
    """A Generator's reply."""
    answer, ids = fields["final_answer"], fields["bullet_ids"]
    text, quoted = _dump(fields), json.dumps(answer)
    after = text.index(quoted) + len(quoted)
    return {
        **common(fields, other),
        "answer in words": f"{fields['reasoning']}\nThe final answer is: {answer}\n",
        "answer in words twice": f"The final answer is {other['final_answer']}\nNo. The final answer is: {answer}",
        "boxed": f"So the final answer is: $\\boxed{{{answer}}}$",
        "boxed alone": f"Done: $\\boxed{{{answer}}}$",
        "finish": f"{fields['reasoning']} Finish[{answer}]",
        "markdown": f"**Final answer:** {answer}",
        "answer as list": _dump({**fields, "final_answer": str(answer).split(",")}),
        "answer as object": _dump({**fields, "final_answer": {"value": answer}}),
        "answer null": _dump({**fields, "final_answer": None}),
        "answer bare": text.replace(f'"final_answer": {quoted}', f'"final_answer": {answer}'),
        "answer with blanks": _dump({**fields, "final_answer": f"  {answer}\n"}),
        "answer with quotes": _dump({**fields, "final_answer": f'"{answer}"'}),
        "answer empty": _dump({**fields, "final_answer": ""}),
        "answer true": _dump({**fields, "final_answer": True}),
        "without answer": _without(fields, "final_answer"),
        "other spelling": text.replace("final_answer", "finalAnswer"),
        "cut after the answer": text[:after],
        "cut in the answer": text[: after - 3],
        "ids null": _dump({**fields, "bullet_ids": None}),
        "ids as text": _dump({**fields, "bullet_ids": ", ".join(ids)}),
        "ids as numbers": _dump({**fields, "bullet_ids": [1, 2]}),
        "ids in brackets": _dump({**fields, "bullet_ids": [f"[{one}]" for one in ids]}),
        "short prefixes": text + "\n[ph-00001] [si-00002]",
    }


def reflector(fields: Fields, other: Fields) -> dict[str, str]:
    """A Reflector's reply; ``bullet_tags`` has at least one tag."""
    tags: Sequence[dict[str, Any]] = fields["bullet_tags"]

    def tagged(value: object) -> str:
        return _dump({**fields, "bullet_tags": value})

    return {
        **common(fields, other),
        "tags null": tagged(None),
        "tags null before a list": _dump({"bullet_tags": None, "steps": [*tags], **_strip(fields)}),
        "tags empty": tagged([]),
        "without tags": _without(fields, "bullet_tags"),
        "a tag without id": tagged([{"tag": "helpful"}, *tags]),
        "a tag without verdict": tagged([{"id": tags[0]["id"]}, *tags[1:]]),
        "bullet for id": tagged([{"bullet": tag["id"], "tag": tag["tag"]} for tag in tags]),
        "upper-case verdict": tagged([{**tag, "tag": "HELPFUL"} for tag in tags]),
        "two verdicts": tagged([{**tags[0], "tag": "harmful"}, *tags, {**tags[0], "tag": "helpful"}]),
        "unknown id": tagged([*tags, {"id": "calc-99999", "tag": "helpful"}]),
        "id as number": tagged([{"id": 5, "tag": "helpful"}, *tags]),
        "tags as texts": tagged([tag["id"] for tag in tags]),
        "tags by verdict": tagged({"helpful": [tag["id"] for tag in tags]}),
        "bracket in a tag": tagged([{**tag, "why": "see [1"} for tag in tags]),
        "tags in words": f'The "bullet_tags" are {json.dumps([*tags])}, as I see it.',
        "unknown verdict": tagged([{**tag, "tag": "useful"} for tag in tags]),
    }


def _strip(fields: Fields) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key != "bullet_tags"}


def curator(fields: Fields, other: Fields) -> dict[str, str]:
    """A Curator's reply; ``operations`` has at least one ADD."""
    adds: Sequence[dict[str, Any]] = fields["operations"]
    first = adds[0]

    def changed(**values: object) -> str:
        return _dump({**fields, "operations": [{**first, **values}, *adds[1:]]})

    def beside(operation: object) -> str:
        return _dump({**fields, "operations": [*adds, operation]})

    return {
        **common(fields, other),
        "no operations": _dump({**fields, "operations": []}),
        "operations as object": _dump({**fields, "operations": {**first}}),
        "operations null": _dump({**fields, "operations": None}),
        "without operations": _without(fields, "operations"),
        "operation as text": beside("ADD"),
        "lower-case add": changed(type="add"),
        "operation without type": beside({"section": "others", "content": "x"}),
        "add without content": beside({"type": "ADD", "section": "others"}),
        "add without section": beside({"type": "ADD", "content": "x"}),
        "update": beside({"type": "UPDATE", "bullet_id": "calc-00001", "content": "new words"}),
        "merge": beside({"type": "MERGE", "source_ids": ["calc-00001"], "content": "new words"}),
        "delete": beside({"type": "DELETE", "bullet_id": "calc-00001"}),
        "unknown type": beside({"type": "PRAISE"}),
        "meta section": beside({"type": "CREATE_META", "section": "META", "content": "x"}),
        "unknown section": changed(section="wisdom"),
        "general section": changed(section="general"),
        "heading as section": changed(section="Formulas & Calculations"),
        "underscores for hyphen": changed(section="problem_solving_heuristics"),
        "section with blanks": changed(section=" others "),
        "section empty": changed(section=""),
        "section null": changed(section=None),
        "section as number": changed(section=3),
        "content empty": changed(content=""),
        "content blank": changed(content="   "),
        "content with blanks": changed(content=f"  {first['content']}  "),
        "content null": changed(content=None),
        "content as list": changed(content=["a", {"b": 1}]),
        "content as number": changed(content=1.50),
        "content in lines": changed(content=f"{first['content']}:\n- one\n\n- two\n    code = {{'a': 1}}\n"),
        "heading in content": changed(content=f"{first['content']}\n## OWN WISDOM\nbelow it"),
        "known heading in content": changed(content="a rule\n## OTHERS\nbelow it"),
        "deeper heading in content": changed(content="a rule\n### Details\nbelow it"),
        "bullet in content": changed(content="[ctx-00263] helpful=1 harmful=0 :: words"),
        "bullet line in content": changed(content="a rule\n[ctx-00263] helpful=1 harmful=0 :: words"),
        "template in content": changed(content="write {{ name }}, {% raw %} and {0} %s $x"),
        "separators in content": changed(content="one\u2028two\x0bthree\rfour\tfive\x85six"),
        "other letters in content": changed(content="Größe in € – naïve ☃"),
        "same content twice": _dump({**fields, "operations": [first, first]}),
        "many": _dump({**fields, "operations": [{**first, "content": f"{first['content']} {n}"} for n in range(6)]}),
    }
