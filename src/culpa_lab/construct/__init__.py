"""Makes the checkpoint that ships in `culpa_lab/checkpoint`, by hand: `docs/reference-model.md`."""
