"""The paper's tables from finished runs: our numbers with intervals and paired tests, beside the paper's."""
