"""The smallest release of DDXPlus: one condition, six evidences, and as many patients as a test wants."""

import json
from pathlib import Path


def evidence(name, question, kind, *, history=False, default=0, values=(), meanings=None):
    return {
        "name": name,
        "question_en": question,
        "question_fr": "?",
        "is_antecedent": history,
        "default_value": default,
        "value_meaning": {value: {"en": text, "fr": "?"} for value, text in (meanings or {}).items()},
        "possible-values": list(values),
        "data_type": kind,
    }


EVIDENCES = [
    evidence("E_1", "Do you sneeze?", "B"),
    evidence("E_2", "How itchy is the nose?", "C", values=range(11)),
    evidence("E_3", "Which colour has the sputum?", "C", default="V_0", values=("V_0", "V_1"), meanings={"V_1": "red"}),
    evidence("E_4", "Where does it hurt?", "M", default="V_0", values=("V_0", "V_2", "V_3"),
             meanings={"V_0": "nowhere", "V_2": "ear(L)", "V_3": "ear(R)"}),
    evidence("E_5", "Do you smoke?", "B", history=True),
    evidence("E_6", "Does it peel?", "C", default="V_9", values=("V_8", "V_9"), meanings={"V_8": "Y", "V_9": "N"}),
]  # fmt: skip
CONDITION = {"cond-name-eng": "Anemia", "cond-name-fr": "Anémie", "symptoms": {"E_1": {}}, "antecedents": {}}
HEADER = "AGE,DIFFERENTIAL_DIAGNOSIS,SEX,PATHOLOGY,EVIDENCES,INITIAL_EVIDENCE"
CODES = "['E_1', 'E_2_@_4', 'E_3_@_V_0', 'E_4_@_V_2', 'E_4_@_V_3', 'E_5', 'E_6_@_V_8']"
LINE = f'40,"[]",F,Anemia,"{CODES}",E_1'


def write_tiny_release(folder: Path, *lines: str, header: str = HEADER) -> Path:
    """Write a release whose three splits hold the same patients: ``lines``, or one."""
    (folder / "release_evidences.json").write_text(json.dumps({one["name"]: one for one in EVIDENCES}))
    (folder / "release_conditions.json").write_text(json.dumps({"Anemia": CONDITION}))
    for split in ("train", "validate", "test"):
        text = "\n".join([header, *(lines or (LINE,))])
        (folder / f"release_{split}_patients.csv").write_text(text + "\n", encoding="utf-8")
    return folder
