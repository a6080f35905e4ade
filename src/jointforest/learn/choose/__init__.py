"""How `jf.fit` chooses: budgets, candidates, rows held out, what each candidate gives them, mixtures."""
