# shellcheck shell=bash
# As root, ragent runs under a user of its own that cannot read agents.key. That user must be able to reach DIR.

ragent_user=cssl-ragent

ragent_user_make() {
	local reason
	[[ $EUID -eq 0 ]] && ! ragent_user_exists || return 0
	reason=$(useradd --system --no-create-home --home-dir /nonexistent --shell /usr/sbin/nologin "$ragent_user" 2>&1) ||
		wait_for 5 ragent_user_exists || # another command makes it at this moment
		die "$reason"
}

ragent_user_exists() {
	id "$ragent_user" >/dev/null 2>&1
}

# ragent_user_reaches DIR
ragent_user_reaches() {
	[[ $EUID -ne 0 ]] || setpriv --reuid="$ragent_user" --clear-groups test -x "$1"
}

# The folder in which ragent makes its control socket.
ragent_folder_make() {
	mkdir -p "$1/ragent"
	[[ $EUID -ne 0 ]] || chown "$ragent_user" "$1/ragent"
}
