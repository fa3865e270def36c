# shellcheck shell=bash
# RAgent's control socket.

# control DIR PATH [CURL-OPTION...]
control() {
	local dir=$1 path=$2
	shift 2
	curl -sS --fail --max-time 10 --unix-socket "$dir/ragent/control.sock" "$@" "http://ragent$path"
}

# agents_are_ready DIR NAME...
agents_are_ready() {
	local dir=$1
	shift
	"$root/front/agents_ready" "$dir/ragent/control.sock" "$@"
}
