"""All variants that a caller can choose, by name."""

from .installed import Installed, InstalledDisabled, InstalledUnlearned
from .policies import POLICY_VARIANTS
from .variants import Outside, OutsideUnlearned, Preload, Variant, VmtouchPath, VmtouchPhysical, Warm

VARIANTS = {v.name: v for v in (Variant, Warm, Installed, InstalledDisabled, InstalledUnlearned,
                                *POLICY_VARIANTS, Outside, OutsideUnlearned, VmtouchPath,
                                VmtouchPhysical, Preload)}
