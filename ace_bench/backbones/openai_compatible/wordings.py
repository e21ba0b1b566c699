"""What a refusal says: that the prompt is too long, that a filter blocked it, that the reply was no JSON.

Servers say the same in many words. So their structure is matched: a code, or a part of the prompt and a limit that it
exceeds. Refusals about another limit, such as requests a minute or the reply's length, are ruled out first.
"""

from __future__ import annotations

import re

_LENGTH_CODES = re.compile(
    r"context_length_exceeded|exceed_context_size|context_?window_?exceeded|context_size_exceeded|tokens_limit_reached"
    r"|(prompt|input|request|context)_too_(long|large)|max_length_exceeded|\b1261\b",
    re.I,
)
"""Codes and types of errors; 1261 is Zhipu's."""
_WINDOW = re.compile(
    r"context[ _-]?(length|window|size|limit)|contextwindow|max_model_len|max_seq(uence)?_len|max_input_len|\bn_ctx\b"
    r"|max_num_tokens|max_total_token|token limit exceeded|range of input length|max length exceeded"
    r"|(maximum|max|model) (prompt|input|sequence|model|token) ?(length|len|size|tokens|limit)"
    r"|reduce the (length|size|number of tokens) (of|in) (the|your) (input|prompt|message)"
    r"|max size: \d+ tokens|expected maxlength: \d+, actual: \d+|上下文|输入.{0,12}(过长|超过|超出)",
    re.I,
)
"""The name of the window, which no other refusal mentions, or advice that only a long prompt needs."""
_PROMPT = r"(prompt|inputs?|request|messages?|conversation|content|context|text|query|sequence)"
_OVER = (
    r"(too (long|large|big|many)|exceed\w*|surpass\w*|(longer|larger|greater|bigger|more) than|over the|above the"
    r"|at most|up to|(must|should) (be|have) (<|less|fewer|shorter|at most)|must not be (above|over|more)|not fit"
    r"|cannot be longer|limit is|limited to|>)"
)
_TOO_LONG = re.compile(
    rf"\b{_PROMPT}\b(?=.*(token|length|long|large|size|character)).{{0,120}}?{_OVER}|too many (input |prompt )?tokens"
    rf"|\btokens?\b.{{0,60}}\b{_PROMPT}\b.{{0,60}}{_OVER}|{_OVER}.{{0,60}}\b{_PROMPT}\b.{{0,20}}(length|tokens?|limit)",
    re.I | re.S,
)
"""A part of the prompt and what it passes."""
_SIZED = re.compile(r"(prompt|input|request|message|sequence|conversation)", re.I)
_NUMBER = re.compile(r"\d[\d,]*")
_SMALLEST_WINDOW = 256
_RATE = re.compile(
    r"per (minute|min|hour|day|second)|\b(TPM|TPD|RPM|RPD|ITPM|OTPM)\b|rate.?limit|quota|throttl|overload|timed out"
    r"|queue",
    re.I,
)
_LIMIT_AND_REQUESTED = re.compile(r"\blimit:? ?(\d[\d,]{0,17})\b.{0,80}?\brequested:? ?(\d[\d,]{0,17})", re.I)
_REPLY_LIMIT = re.compile(
    r"max_(completion_|new_|output_)?tokens|max tokens|maxOutputTokens|(completion|output) tokens?", re.I
)
_BESIDE_REPLY = re.compile(r"(prompt|input|message|total|sequence)", re.I)
"""Where the limit of replies is refused for the prompt beside it, as in ``inputs + max_new_tokens <= 4096``."""
_OTHER_LIMIT = re.compile(
    r"\b(images?|pixels?|audio|video|pdf|files?|attachments?)\b|\b(tools?|functions?|propert(y|ies)|enum|schema|grammar"
    r"|stop sequences?|logit_bias|top_logprobs|metadata|user|name|description)\b|vocab|batch size|budget_tokens"
    r"|content[- ]type|\bheader",
    re.I,
)
_TEXT_LIMIT = re.compile(r"token|context (length|window|size)|messages\[\d+\]\.content", re.I)
"""What a limit of the prompt is measured in, although it also mentions images or tools."""
_BAD_FIELD = re.compile(
    r"unrecogni[sz]ed|unknown (argument|parameter|field|name)|not permitted|unexpected keyword|extra_forbidden"
    r"|unsupported (parameter|value)|out of vocabulary|out-of-vocab|must be (of type|an integer|a number|positive)",
    re.I,
)

_FILTERED = re.compile(
    r"content[_ -]?filter|\bfiltered\b|content[_ ]policy|responsibleai|flagged|moderation|data_?inspection"
    r"|(inappropriate|unsafe|harmful) content|sensitive (content|word|information)|sensitive_words"
    r"|content exists risk|safety_check|prohibited_content|guardrail_intervened|不安全|敏感"
    r"|(blocked|rejected|triggered|violat\w*).{0,60}(safety|polic|guideline|guardrail|filter|terms)"
    r"|(safety|polic|guideline|guardrail|filter)\w*.{0,60}(blocked|rejected|triggered|violat|interven)",
    re.I,
)
_FILTER_CODES = re.compile(r"\b(1301|SAFETY|PROHIBITED_CONTENT|BLOCKLIST|SPII|contentFilter|sensitive)\b", re.I)
"""Codes of errors; 1301 is Zhipu's."""
_ACCOUNT = re.compile(
    r"(account|organi[sz]ation|team|project|key|user)\b.{0,40}(deactivated|suspended|disabled|banned|terminated)", re.I
)
_FILTERED_END = re.compile(
    r"content.?filter|safety|prohibited|blocklist|spii|guardrail|sensitive|recitation|moderation", re.I
)

_NO_JSON = re.compile(
    r"json_validate_failed|output_parse_failed|tool_use_failed|malformed_function_call"
    r"|failed to (generate|validate|produce) (valid )?json"
    r"|failed to parse input at pos|output that does not match the expected .{0,30}format"
    r"|(model|generation|generated|completion|response|output).{0,40}"
    r"(invalid|malformed|not valid|unparsable|incomplete) (json|structured output|tool call)",
    re.I,
)
"""The reply could not be parsed on the server: the model wrote it, the request was in order."""


def says_too_long(codes: str, text: str) -> bool:
    """Whether a refusal says that the prompt, alone or with the reply, is longer than the server's window."""
    if says_rate_limited(codes, text):
        return False
    if _LENGTH_CODES.search(f"{codes} {text}"):
        return True
    if _BAD_FIELD.search(text) or (_OTHER_LIMIT.search(text) and not _TEXT_LIMIT.search(f"{codes} {text}")):
        return False
    if _REPLY_LIMIT.search(text) and not _BESIDE_REPLY.search(_REPLY_LIMIT.sub("", text)):
        return False
    return bool(_WINDOW.search(text) or _TOO_LONG.search(text)) or _compares_tokens(text)


def _compares_tokens(text: str) -> bool:
    """Whether a text sets two numbers of tokens against each other: of a prompt, and of what fits."""
    numbers = {int(number.replace(",", "")) for number in _NUMBER.findall(text)}
    sizes = [number for number in numbers if number >= _SMALLEST_WINDOW]
    return len(sizes) > 1 and "token" in text.lower() and bool(_SIZED.search(text))


def says_rate_limited(codes: str, text: str) -> bool:
    """Whether a refusal names a limit of what an account may send in some time."""
    return bool(_RATE.search(f"{codes} {text}"))


def says_over_rate(codes: str, text: str) -> bool:
    """Whether one request has more tokens than the account may send in a minute: no pause helps."""
    match = _LIMIT_AND_REQUESTED.search(text)
    if match is None or not says_rate_limited(codes, text):
        return False
    limit, requested = (int(number.replace(",", "")) for number in match.groups())
    return requested > limit


def says_filtered(codes: str, text: str) -> bool:
    """Whether a refusal says that a filter of the provider blocked the prompt or the reply: no account, no setting."""
    if _ACCOUNT.search(text) or _BAD_FIELD.search(text):
        return False
    return bool(_FILTER_CODES.search(codes) or _FILTERED.search(f"{codes} {text}"))


def ended_by_filter(reason: str) -> bool:
    """Whether a filter ended the reply, by the word of any provider for it."""
    return bool(_FILTERED_END.search(reason))


def says_no_json(codes: str, text: str) -> bool:
    """Whether the server says that it could not parse what the model wrote."""
    return bool(_NO_JSON.search(f"{codes} {text}"))
