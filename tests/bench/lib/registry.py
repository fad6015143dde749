"""All variants that can be asked for, by name."""

from .installed import Installed, InstalledDisabled, InstalledUnlearned
from .variants import Outside, OutsideUnlearned, Preload, Variant, VmtouchPath, VmtouchPhysical, Warm

VARIANTS = {v.name: v for v in (Variant, Warm, Installed, InstalledDisabled, InstalledUnlearned,
                                Outside, OutsideUnlearned, VmtouchPath, VmtouchPhysical, Preload)}
