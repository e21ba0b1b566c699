"""Countries and their capitals, of which the tests' environments ask."""

CITIES = {
    "Australia": "Canberra", "Canada": "Ottawa", "Turkey": "Ankara", "Morocco": "Rabat", "Brazil": "Brasilia",
    "Kenya": "Nairobi", "Peru": "Lima", "Norway": "Oslo", "Chile": "Santiago", "Cuba": "Havana",
}  # fmt: skip
