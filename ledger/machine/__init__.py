"""The machine of the ledger: what a claim is, how it is judged, and how verdicts are shown."""
