# shellcheck shell=bash
# The cluster's two keys in DIR, made once: link.key for the links, agents.key for what only agents may read.

make_key_file() {
	[[ -f $1 ]] && return
	(umask 077 && echo "$(date +%Y%m%d) $(openssl rand -hex 32)" >"$1")
}

keys_make() {
	make_key_file "$1/link.key"
	make_key_file "$1/agents.key"
}
