"""Skill: write one SQLite query that answers a question over a database schema (BIRD-SQL)."""

from ace_rehearsal.reader.skills.sql.case import Sql
from ace_rehearsal.reader.skills.sql.opposite import opposite
from ace_rehearsal.reader.skills.sql.queries import same_query

__all__ = ["Sql", "opposite", "same_query"]
