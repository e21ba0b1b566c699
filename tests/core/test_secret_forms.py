"""A secret is found in every form in which a server may echo it, and other texts stay as they are."""

import base64
import html
import json
import time
import urllib.parse

import pytest

from ace_bench.core.secret_forms import SecretForms

KEYS = ("sk/proj+abc=d-e_f.0123456789", 'quote"and\\slash&<tag>%20', "plain0123456789abcdef")
HIDDEN = "[key]"


def percent(key):
    return "".join(f"%{byte:02X}" for byte in key.encode())


FORMS = {
    "as it is": str,
    "URL": lambda key: urllib.parse.quote(key, safe=""),
    "URL, lower case": lambda key: urllib.parse.quote(key, safe="").replace("%2F", "%2f").replace("%2B", "%2b"),
    "URL, every character": percent,
    "URL, every character, lower case": lambda key: percent(key).lower(),
    "URL, half": lambda key: key[:9] + percent(key[9:]),
    "URL, twice": lambda key: urllib.parse.quote(urllib.parse.quote(key, safe=""), safe=""),
    "HTML, named": html.escape,
    "HTML, names of HTML 5": lambda key: key.replace("&", "&AMP;").replace("+", "&plus;").replace("/", "&sol;"),
    "HTML, decimal": lambda key: "".join(f"&#{ord(one)};" for one in key),
    "HTML, decimal with zeros": lambda key: "".join(f"&#{ord(one):05};" for one in key),
    "HTML, hexadecimal": lambda key: "".join(f"&#x{ord(one):x};" for one in key),
    "HTML, capital hexadecimal": lambda key: "".join(f"&#X{ord(one):X};" for one in key),
    "HTML, twice": lambda key: html.escape(html.escape(key)),
    "JSON": lambda key: json.dumps(key)[1:-1],
    "JSON, slashes": lambda key: json.dumps(key)[1:-1].replace("/", "\\/"),
    "JSON, every character": lambda key: "".join(f"\\u{ord(one):04x}" for one in key),
    "JSON, capital": lambda key: "".join(f"\\u{ord(one):04X}" for one in key),
    "JSON in JSON": lambda key: json.dumps(json.dumps(key))[1:-1],
    "JSON in JSON, every character": lambda key: "".join(f"\\\\u{ord(one):04x}" for one in key),
    "Python": lambda key: "".join(f"\\x{ord(one):02x}" for one in key),
    "hexadecimal": lambda key: key.encode().hex(),
    **{f"base64 behind {n}": lambda key, n=n: base64.b64encode(b"u" * n + key.encode()).decode() for n in range(4)},
    "base64 before more": lambda key: base64.b64encode(f"{key} and more".encode()).decode(),
    "base64 without padding": lambda key: base64.b64encode(f"user:{key}".encode()).decode().rstrip("="),
    "base64 for URLs": lambda key: base64.urlsafe_b64encode(f"user:{key}".encode()).decode(),
    "base64 in a URL": lambda key: urllib.parse.quote(base64.b64encode(f"me:{key}".encode()).decode(), safe=""),
    "base64 in JSON": lambda key: base64.b64encode(f"me:{key}".encode()).decode().replace("/", "\\/"),
}


@pytest.mark.parametrize("form", FORMS)
def test_a_secret_is_hidden_in_every_form(form):
    hider = SecretForms(KEYS)
    for key in KEYS:
        echoed = FORMS[form](key)
        before, hidden, after = hider.hide(f"Wrong key ({echoed}), sent with 'x'.", HIDDEN).partition(HIDDEN)
        assert hidden
        assert before.startswith("Wrong key (")
        assert after.endswith("), sent with 'x'.")
        assert len(before + after) < 45, "what is left is of the other words"


def test_other_texts_stay_whatever_they_are_encoded_in():
    hider = SecretForms(("EMPTY", *KEYS))
    other = base64.b64encode(b"another text of some length").decode()
    for text in ("100% of &amp; \\u0041 a%20b", other, "", "\\" * 9):
        assert hider.hide(text, HIDDEN) == text
    assert SecretForms(()).hide("text", HIDDEN) == "text"
    assert hider.hide("the key EMPTY", HIDDEN) == f"the key {HIDDEN}"


@pytest.mark.parametrize(
    "unit", ["\\", "%25", "&amp;", "&#0", "\\u00", "%", "sk/proj", "aaaa", "%73", "://a", "://a:b"]
)
def test_a_long_text_takes_time_in_proportion(unit):
    hider = SecretForms(KEYS)
    took = []
    for size in (20_000, 80_000):
        text = unit * (size // len(unit)) + KEYS[0]  # which makes it look closely
        begun = time.process_time()
        assert KEYS[0] not in hider.hide(text, HIDDEN)
        took.append(time.process_time() - begun)
    assert took[1] < 8 * took[0] + 0.2
