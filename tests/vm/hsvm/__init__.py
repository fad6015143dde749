"""Real boots of real Debian systems under qemu, with everything in software (TCG)."""
