"""All variants that a caller can choose, by name."""

from .installed import Installed, InstalledControl, InstalledDisabled, InstalledUnlearned, Removed
from .policies import POLICY_VARIANTS
from .preload import Preload, PreloadService
from .variants import Outside, OutsideUnlearned, Variant, VmtouchPath, VmtouchPhysical, Warm

VARIANTS = {v.name: v for v in (Variant, Warm, Installed, InstalledControl, InstalledDisabled,
                                InstalledUnlearned, Removed,
                                *POLICY_VARIANTS, Outside, OutsideUnlearned, VmtouchPath,
                                VmtouchPhysical, Preload, PreloadService)}
