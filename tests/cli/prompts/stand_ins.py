"""Stand-ins for checkouts of the official repositories: their form, as our notes describe it, in words of our own."""

from __future__ import annotations

from pathlib import Path

_TEXTS = Path(__file__).with_name("texts")


def write_checkout(name: str, folder: Path) -> Path:
    """Write a checkout: the files below ``texts/NAME``, without their last ending."""
    for path in sorted((_TEXTS / name).rglob("*.txt")):
        target = folder / path.relative_to(_TEXTS / name).with_suffix("")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(path.read_text(encoding="utf-8"), encoding="utf-8")
    return folder


def finance(folder: Path, restyled: tuple[str, str] = ("**", ":**")) -> Path:
    """Write a checkout of the finance repository; ``restyled`` is what stands before and behind a heading."""
    before, behind = restyled
    for path in write_checkout("finance", write_checkout("small_finance", folder)).glob("ace/prompts/*.py"):
        lines = [
            f"{before}{line[2:-3]}{behind}" if line.startswith("**") and line.endswith(":**") else line
            for line in path.read_text().split("\n")
        ]
        path.write_text("\n".join(lines))
    return folder


def appworld(folder: Path) -> Path:
    """Write a checkout of the AppWorld repository."""
    prompts = write_checkout("appworld", folder) / "experiments" / "prompts"
    agent, study = ((prompts / f"{name}.txt").read_text() for name in ("with_playbook", "study"))
    blind = [part for part in study.split("\n\n") if "ground_truth" not in part and "test_report" not in part]
    plain = agent.replace("### PLAYBOOK BEGIN\n{{ playbook }}\n### PLAYBOOK END\n\n", "")
    (prompts / "study_blindly.txt").write_text("\n\n".join(blind))
    (prompts / "without_playbook.txt").write_text(plain)
    (prompts / "picture.bin").write_bytes(b"\xff\xfe\x00")
    return folder
