"""Stand-ins for files of the official repositories: their form, as our notes describe it, in words of our own."""

from __future__ import annotations

from pathlib import Path

_TEXTS = Path(__file__).with_name("texts")


def _text(name: str) -> str:
    return (_TEXTS / f"{name}.txt").read_text()


def finance_code(folder: Path) -> Path:
    """Write the files of the finance repository that hold sentences of prompts in their code."""
    (folder / "ace" / "ace.py").write_text(_text("loop"))
    (folder / "finance").mkdir()
    (folder / "finance" / "data_processor.py").write_text(_text("numbers"))
    return folder


def finance(folder: Path, restyled: tuple[str, str] = ("**", ":**")) -> Path:
    """Write a checkout of the finance repository; ``restyled`` is what stands before and behind a heading."""
    prompts = folder / "ace" / "prompts"
    prompts.mkdir(parents=True)
    before, behind = restyled
    for name in ("generator", "reflector", "curator"):
        lines = [
            f"{before}{line[2:-3]}{behind}" if line.startswith("**") and line.endswith(":**") else line
            for line in _text(name).split("\n")
        ]
        (prompts / f"{name}.py").write_text("\n".join(lines))
    return finance_code(folder)


def appworld(folder: Path) -> Path:
    """Write a checkout of the AppWorld repository."""
    prompts, code = folder / "experiments" / "prompts", folder / "experiments" / "code" / "ace"
    prompts.mkdir(parents=True)
    code.mkdir(parents=True)
    (code / "adaptation_react.py").write_text(_text("agent_code"))
    blind = "\n\n".join(
        part for part in _text("study").split("\n\n") if "ground_truth" not in part and "test_report" not in part
    )
    plain = _text("agent").replace("### PLAYBOOK BEGIN\n{{ playbook }}\n### PLAYBOOK END\n\n", "")
    for name, text in (
        ("with_playbook", _text("agent")),
        ("without_playbook", plain),
        ("study", _text("study")),
        ("study_blindly", blind),
        ("look_after", _text("look_after")),
    ):
        (prompts / f"{name}.txt").write_text(text)
    (prompts / "picture.bin").write_bytes(b"\xff\xfe\x00")
    return folder
