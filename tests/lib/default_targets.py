"""default_targets.py FOLDER: the files that are built by default in this build of meson's, one a line, as ninja names them."""

import json
import os
import pathlib
import sys

folder = pathlib.Path(sys.argv[1]).resolve()
targets = json.loads((folder / "meson-info" / "intro-targets.json").read_text())
print("\n".join(os.path.relpath(name, folder) for target in targets if target["build_by_default"] for name in target["filename"]))
