"""What the ReAct agent reads out of a reply, of whatever form."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ace_bench.agents.conversation import read_reply
from ace_bench.core.prompts import cited_in


@pytest.mark.parametrize(
    ("text", "thought", "code"),
    [
        ("First.\n```python\nx = 1\n```\nOutput: made up", "First.", "x = 1"),
        ("```\nx = 1\n```", "", "x = 1"),
        ("```Python\nx = 1\n```\n```python\ny = 2\n```", "", "x = 1"),
        ("Go: ```py\nx = 1```", "Go:", "x = 1"),
        ("```python\r\nx = 1\r\ny = 2\r\n```", "", "x = 1\ny = 2"),
        ("cut off\n```python\nx = 1", "cut off", "x = 1"),
        ("```json\n{}\n```\n```python\nx = 1\n```", "```json\n{}\n```", "x = 1"),
        ("```bash\nls\n```\nnothing else", "```bash\nls\n```\nnothing else", ""),
        ("```sql\nselect 1", "```sql\nselect 1", ""),
        ("  ```python\n  if x:\n      y()\n  ```", "", "if x:\n    y()"),
        ("```python\nnote = '''a ``` b'''\n```", "", "note = '''a ``` b'''"),
        ("```python\n\n \n```", "```python\n\n \n```", ""),
        ("use `x`, not ```", "use `x`, not ```", ""),
        ("", "", ""),
    ],
)
def test_the_first_block_of_python_is_the_code(text, thought, code):
    reply = read_reply(text)
    assert (reply.thought, reply.code) == (thought, code)
    assert "made up" not in reply.shown
    assert reply.shown


@given(st.text(alphabet="`python x=\n[]-0123456789", max_size=200) | st.text(max_size=100))
def test_any_reply_can_be_read_and_what_is_shown_reads_the_same(text):
    reply = read_reply(text)
    assert reply.code == "" or read_reply(reply.shown).code == reply.code
    assert isinstance(cited_in([text]), tuple)


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("by [sahr-00001]", ("sahr-00001",)),
        ("[a-00001, b-00002; c-0003]", ("a-00001", "b-00002", "c-0003")),
        ("[a-00001][a-00001]", ("a-00001",)),
        ("names[0], [x-1], a-00001, [12-00001]", ()),
        ("[" * 500 + "a-00001" + "]" * 500, ("a-00001",)),
    ],
)
def test_ids_count_only_in_brackets(text, ids):
    assert cited_in([text]) == ids
