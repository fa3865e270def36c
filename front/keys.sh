# shellcheck shell=bash
# The cluster's keys in DIR, made once: link.key for the links, and agents.key, which only agents may read; mail.key, which
# seals the mails in the Redis servers of --mail-queue; and a token for the control API.

# random_hex WORDS: of 32 bits, from the kernel (getrandom(2) is behind SRANDOM)
random_hex() {
	local i
	for ((i = 0; i < $1; i++)); do
		printf '%08x' "$SRANDOM"
	done
}

# random_base64url CHARACTERS: of six bits
random_base64url() {
	local i characters=ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_
	for ((i = 0; i < $1; i++)); do
		printf %s "${characters:SRANDOM & 63:1}"
	done
}

make_key_file() {
	[[ -f $1 ]] && return
	(umask 077 && printf '%(%Y%m%d)T %s\n' -1 "$(random_hex 8)" >"$1")
}

# control.token is the operator's; control.tokens, with its hash only, is what RAgent reads.
make_token() {
	[[ -f $1/control.token ]] && return
	local token hash
	token=cssl_$(random_base64url 43)
	read -r hash _ < <(printf %s "$token" | b2sum -l 256)
	(umask 077 && echo "$token" >"$1/control.token")
	echo "operator operate $hash" >"$1/control.tokens"
	chmod 644 "$1/control.tokens"
}

keys_make() {
	make_key_file "$1/link.key"
	make_key_file "$1/agents.key"
	[[ ${settings[mail_queue]} == no ]] || make_key_file "$1/mail.key"
	make_token "$1"
}
