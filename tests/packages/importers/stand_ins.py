"""Stand-ins for files of the official repositories: their form, as our notes describe it, in words of our own."""

from __future__ import annotations

from pathlib import Path

_GENERATOR = '''GENERATOR_PROMPT = """Somebody asks you a question. Answer it with what the collected advice below says.

**How to go about it:**
- Look into the playbook before anything else.
- A reflection, where there is one, says what went wrong before.

Give back an object in JSON with the keys reasoning, bullet_ids and final_answer.

**Playbook:**
{}

**Reflection:**
{}

**Question:**
{}

**Context:**
{}

**Reply in JSON, like this:**
{{
  "reasoning": "[how you came to it]",
  "bullet_ids": ["abc-00001", "abc-00002"],
  "final_answer": "[the answer and nothing else]"
}}

---
"""
'''
_REFLECTOR = '''REFLECTOR_PROMPT = """Study an attempt and find out where it went astray.

**Instructions:**
- Name the error and its cause.

**Question:**
{}

**Model's Reasoning Trace:**
{}

**Model's Predicted Answer:**
{}

**Ground Truth Answer:**
{}

**Environment Feedback:**
{}

**The part of the playbook that was used for the answer:**
{}

**Reply in JSON, like this:**
{{
  "reasoning": "[thoughts]",
  "error_identification": "[error]",
  "root_cause_analysis": "[cause]",
  "correct_approach": "[better]",
  "key_insight": "[lesson]",
  "bullet_tags": [{{"id": "abc-00001", "tag": "helpful"}}]
}}
"""

REFLECTOR_PROMPT_NO_GT = """Study an attempt without knowing the answer.

**Question:**
{}

**Model's Reasoning Trace:**
{}

**Model's Predicted Answer:**
{}

**Environment Feedback:**
{}

**The part of the playbook that was used for the answer:**
{}

**Reply in JSON, like this:**
{{"reasoning": "", "error_identification": "", "key_insight": "[lesson]", "bullet_tags": []}}
"""
'''
_CURATOR = '''CURATOR_PROMPT = """You look after a playbook. Say what is to be added.

**Training Context:**
- Budget: {token_budget} tokens
- Sample {current_step} of {total_samples}

**Current Playbook Stats:**
{playbook_stats}

**Recent Reflection:**
{recent_reflection}

**Current Playbook:**
{current_playbook}

**Question Context:**
{question_context}

**Your Task:**
Reply with an object in JSON:
{{
  "reasoning": "[why]",
  "operations": [
    {{
      "type": "ADD",
      "section": "formulas_and_calculations",
      "content": "[text]"
    }}
  ]
}}
"""

CURATOR_PROMPT_NO_GT = CURATOR_PROMPT_NO_GT_TEXT = """As above, but nobody knows the answer.

**Recent Reflection:**
{recent_reflection}

**Current Playbook:**
{current_playbook}

**Question Context:**
{question_context}

**Your Task:**
Reply with an object in JSON: {{"reasoning": "", "operations": [{{"type": "ADD", "section": "others", "content": ""}}]}}
"""
'''


_LOOP = """import not_installed

raise SystemExit("this file is read, never run")


class ACE:
    def _train_single_sample(self, is_correct):
        if not is_correct:
            for _ in range(3):
                self.reflect(environment_feedback="This is {not correct}.")
        else:
            self.reflect(environment_feedback="This is correct.")
"""
_NUMBERS = """def parse_context_and_question_formula(text):
    if ". Answer:" in text:
        question_text = text
        question_text += " Say a number. "
        return "", question_text
    return "", text
"""


def finance_code(folder: Path) -> Path:
    """Write the files of the finance repository that hold sentences of prompts in their code."""
    (folder / "ace" / "ace.py").write_text(_LOOP)
    (folder / "finance").mkdir()
    (folder / "finance" / "data_processor.py").write_text(_NUMBERS)
    return folder


def finance(folder: Path, restyled: tuple[str, str] = ("**", ":**")) -> Path:
    """Write a checkout of the finance repository; ``restyled`` is what stands before and behind a heading."""
    prompts = folder / "ace" / "prompts"
    prompts.mkdir(parents=True)
    for name, text in (("generator", _GENERATOR), ("reflector", _REFLECTOR), ("curator", _CURATOR)):
        before, behind = restyled
        lines = [
            f"{before}{line[2:-3]}{behind}" if line.startswith("**") and line.endswith(":**") else line
            for line in text.split("\n")
        ]
        (prompts / f"{name}.py").write_text("\n".join(lines))
    return finance_code(folder)


_AGENT = """
USER:
You act for me in a Python session. Apps are reached by `apis.<app>.<api>(...)`; print what you want to see.

### PLAYBOOK BEGIN
{{ playbook }}
### PLAYBOOK END

My name is: {{ main_user.first_name }} {{ main_user.last_name }}, {{ main_user.email }}, {{ main_user.phone_number }}.
Task: How many notes are there?

ASSISTANT:
I look.
```python
print({'a': {'b': 1}}, f"{len(apis.api_docs.show_app_descriptions())}")
```


USER:
Output:
```
{{ app_descriptions }}
```

ASSISTANT:
```python
apis.notes.login(username='{{ main_user.email }}')
apis.supervisor.complete_task(answer=9)
```

USER:
Output:
```
Done.
```
----

USER: Now here is another task.
Task: Count the notes again.

ASSISTANT:
```python
apis.supervisor.complete_task(answer=9)
```

USER:
**Key instructions**: act for real.

USER:
Now for the real thing.

My name is: {{ main_user.first_name }}.
Task: {{ input_str }}"""
_STUDY = """Study what an agent did and say what is to be learnt.

## Ground truth code
{{ground_truth_code}}

## Test report
{{test_report}}

## Generated code
{{generated_code}}

## Generated rationale
{{generated_rationale}}

## Execution error
{{execution_error}}

## API docs
{{spec_or_api_docs}}

## Playbook
{{playbook}}

## Previous reflection
{{previous_reflection}}

## Reply
{{
  "reasoning": "", "error_identification": "", "correct_approach": "", "key_insight": "{like this}"
}}
"""
_LOOK_AFTER = """Say what is to be added to the playbook.

## Question context
{question_context}

## Current playbook
{current_playbook}

## Final generated code
{final_generated_code}

## Reflection
{guidebook}

## Reply
{{"reasoning": "", "operations": [{{"type": "ADD", "section": "others", "content": ""}}]}}
"""
_AGENT_CODE = """raise RuntimeError("never run")


class Agent:
    def next_execution_inputs_and_cost(self, outputs, solution=None, reasoning_text=""):
        if reasoning_text != "":
            self.messages.append({"role": "user", "content": "It went wrong {before}."})
            self.messages.append({"role": "assistant", "content": reasoning_text + "\\n\\n"})
            self.messages.append({"role": "user", "content": "Do better."})

    def truncate_output(self, content):
        if len(content) > 20000:
            content = content[:20000] + "\\n[CUT]"
        return content

    def trimmed_messages(self):
        message["content"] = "Output:\\n```\\n[GONE]```\\n\\n"
        if not first["content"].endswith("[STEPS GONE]\\n\\n"):
            first["content"] += "[STEPS GONE]\\n\\n"

    def reflector_call(self):
        filled = (
            self.reflector_prompt
            .replace("{{ground_truth_code}}", self.solution or "")
            .replace("{{test_report}}", self.test_report or "")
            .replace("{{generated_code}}", "See below")
            .replace("{{generated_rationale}}", "See below")
            .replace("{{spec_or_api_docs}}", "See below")
            .replace("{{execution_error}}", "See below")
            .replace("{{playbook}}", self.playbook or "N/A")
            .replace("{{previous_reflection}}", "None yet")
        )
        conversation_history = "\\n\\n=== ALL STEPS ===\\n"

    def curator_call(self):
        conversation_history = "\\n\\n=== ALL STEPS ===\\n"
        return self.curator_prompt.format(
            final_generated_code="See the steps", guidebook=reasoning, current_playbook=self.playbook
        )
"""


def appworld(folder: Path) -> Path:
    """Write a checkout of the AppWorld repository."""
    prompts, code = folder / "experiments" / "prompts", folder / "experiments" / "code" / "ace"
    prompts.mkdir(parents=True)
    code.mkdir(parents=True)
    (code / "adaptation_react.py").write_text(_AGENT_CODE)
    blind = "\n\n".join(
        part for part in _STUDY.split("\n\n") if "ground_truth" not in part and "test_report" not in part
    )
    plain = _AGENT.replace("### PLAYBOOK BEGIN\n{{ playbook }}\n### PLAYBOOK END\n\n", "")
    for name, text in (
        ("with_playbook", _AGENT),
        ("without_playbook", plain),
        ("study", _STUDY),
        ("study_blindly", blind),
        ("look_after", _LOOK_AFTER),
    ):
        (prompts / f"{name}.txt").write_text(text)
    (prompts / "picture.bin").write_bytes(b"\xff\xfe\x00")
    return folder
