"""Boots real Debian systems under qemu, with software emulation (TCG)."""
