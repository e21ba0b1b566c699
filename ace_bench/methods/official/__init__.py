"""The authors' loops, step for step, in own words: ``protocol=official`` runs them in place of ACE."""
