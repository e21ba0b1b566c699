"""The OpenAI embeddings protocol over hashed words: no language model, for clients and tests."""

from __future__ import annotations

import base64
import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from ace_bench.contexts.playbook.embed import HashingEmbedder
from ace_bench.core.tokens import estimate_tokens
from ace_rehearsal.reader.schema_values import BadRequest

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
        raise BadRequest(
            400, "invalid_input", "'input' must be a text or a list of texts, none of them empty, not tokens."
        )
    form = data.get("encoding_format", "float")
    if form not in ("float", "base64"):
        raise BadRequest(400, "unsupported_format", "'encoding_format' must be float or base64.")
    if data.get("dimensions") is not None:
        raise BadRequest(400, "unsupported_parameter", "This server cannot do 'dimensions'; leave it out.")
    tokens = sum(map(estimate_tokens, texts))
    vectors = _EMBEDDER.embed(texts)
    rows = map(_base64, vectors) if form == "base64" else vectors.tolist()
    return {
        "object": "list",
        "data": [{"object": "embedding", "index": index, "embedding": vector} for index, vector in enumerate(rows)],
        "model": model,
        "usage": {"prompt_tokens": tokens, "total_tokens": tokens},
        "simulated": True,
    }


def _base64(vector: np.ndarray[Any, Any]) -> str:
    """A vector in the OpenAI client's default encoding: little-endian floats of 32 bits."""
    return base64.b64encode(vector.astype("<f4").tobytes()).decode()
