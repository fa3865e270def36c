"""The commands of ./cssl that concern a cluster: python3 front/cluster/__main__.py COMMAND [OPTIONS]. And their supervisor: ... supervise DIR."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
command, *arguments = sys.argv[1:]
if command == "supervise":
    from cluster.supervisor import supervise as run  # without the commands, which would make its start longer
else:
    from cluster.commands import run

try:
    sys.exit(run(command, arguments, os.environ, sys.stderr.write))
except KeyboardInterrupt:
    sys.exit(130)
