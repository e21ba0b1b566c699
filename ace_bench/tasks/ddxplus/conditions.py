"""The 49 conditions of DDXPlus with StreamBench's numbers: from 0, sorted by code points.

The sorted English names in the original release's ``release_conditions.json`` are the same list.
"""

from __future__ import annotations

CONDITIONS = (
    "Acute COPD exacerbation / infection",
    "Acute dystonic reactions",
    "Acute laryngitis",
    "Acute otitis media",
    "Acute pulmonary edema",
    "Acute rhinosinusitis",
    "Allergic sinusitis",
    "Anaphylaxis",
    "Anemia",
    "Atrial fibrillation",
    "Boerhaave",
    "Bronchiectasis",
    "Bronchiolitis",
    "Bronchitis",
    "Bronchospasm / acute asthma exacerbation",
    "Chagas",
    "Chronic rhinosinusitis",
    "Cluster headache",
    "Croup",
    "Ebola",
    "Epiglottitis",
    "GERD",
    "Guillain-Barré syndrome",
    "HIV (initial infection)",
    "Influenza",
    "Inguinal hernia",
    "Larygospasm",
    "Localized edema",
    "Myasthenia gravis",
    "Myocarditis",
    "PSVT",
    "Pancreatic neoplasm",
    "Panic attack",
    "Pericarditis",
    "Pneumonia",
    "Possible NSTEMI / STEMI",
    "Pulmonary embolism",
    "Pulmonary neoplasm",
    "SLE",
    "Sarcoidosis",
    "Scombroid food poisoning",
    "Spontaneous pneumothorax",
    "Spontaneous rib fracture",
    "Stable angina",
    "Tuberculosis",
    "URTI",
    "Unstable angina",
    "Viral pharyngitis",
    "Whooping cough",
)

NUMBERS = {name.lower(): number for number, name in enumerate(CONDITIONS)}
"""Number of a condition by its name in lower case."""


def answer_of(number: int) -> str:
    """Return the answer that names a condition: ``<number>. <diagnosis>``."""
    return f"{number}. {CONDITIONS[number]}"
