"""Guest: BIRD-SQL, questions about databases, answered by one SQLite query each (paper, sections 4.1 and A.2)."""
