# shellcheck shell=bash
# RAgent's control socket.

# control DIR PATH [CURL-OPTION...]
control() {
	local dir=$1 path=$2
	shift 2
	curl -sS --fail --max-time 10 --unix-socket "$dir/ragent/control.sock" "$@" "http://ragent$path"
}

# agents_are_ready DIR NAME...: RAgent answers, and these agents are up with all their links
agents_are_ready() {
	local dir=$1
	shift
	control "$dir" /v1/status 2>/dev/null | /usr/bin/python3 -c '
import json, sys
agents = json.load(sys.stdin)["agents"]
ready = {a["name"] for a in agents if a["state"] == "up" and a["links_up"] == a["links"]}
sys.exit(not set(sys.argv[1:]) <= ready)
' "$@" 2>/dev/null
}
