"""Other libraries: tree ensembles, Arrow, FORDE, SPFlow, MLflow, Dask."""
