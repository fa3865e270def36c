# shellcheck shell=bash
# The cluster's keys in DIR, made once: link.key for the links, and agents.key, which only agents may read; mail.key, which
# seals the mails in the Redis servers of --mail-queue; and a token for the control API.

make_key_file() {
	[[ -f $1 ]] && return
	(umask 077 && echo "$(date +%Y%m%d) $(openssl rand -hex 32)" >"$1")
}

# control.token is the operator's; control.tokens, with its hash only, is what RAgent reads.
make_token() {
	[[ -f $1/control.token ]] && return
	local token
	token=cssl_$(openssl rand -base64 32 | tr '+/' '-_' | tr -d '=\n')
	(umask 077 && echo "$token" >"$1/control.token")
	echo "operator operate $(printf %s "$token" | b2sum -l 256 | cut -d' ' -f1)" >"$1/control.tokens"
	chmod 644 "$1/control.tokens"
}

keys_make() {
	make_key_file "$1/link.key"
	make_key_file "$1/agents.key"
	[[ ${settings[mail_queue]} == no ]] || make_key_file "$1/mail.key"
	make_token "$1"
}
