"""The OpenAI embeddings protocol over hashed words: no language model, for clients and tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from ace_bench.contexts.playbook.embed import HashingEmbedder
from ace_bench.core.tokens import estimate_tokens
from ace_rehearsal.reader.bad_request import BadRequest

_EMBEDDER = HashingEmbedder()


def embeddings_body(body: bytes, model: str) -> Mapping[str, Any]:
    """Answer a request for embeddings; raises ``BadRequest`` with the cause."""
    try:
        data = json.loads(body)
    except (ValueError, RecursionError) as error:
        raise BadRequest(400, "invalid_json", f"The body is not valid JSON: {error}") from error
    if not isinstance(data, dict) or data.get("model") != model:
        raise BadRequest(404, "model_not_found", f"This server has the model {model!r} only.")
    texts = [data["input"]] if isinstance(data.get("input"), str) else data.get("input")
    if not isinstance(texts, list) or not texts or not all(isinstance(text, str) and text for text in texts):
        raise BadRequest(400, "invalid_input", "'input' must be a text or a list of texts, none of them empty.")
    if data.get("encoding_format", "float") != "float":
        raise BadRequest(400, "unsupported_format", "This server sends floats; send encoding_format=float.")
    tokens = sum(map(estimate_tokens, texts))
    rows = enumerate(_EMBEDDER.embed(texts).tolist())
    return {
        "object": "list",
        "data": [{"object": "embedding", "index": index, "embedding": vector} for index, vector in rows],
        "model": model,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        "simulated": True,
    }
