/* peer_way.c: a look at the socket's file before each attempt. */
#include "sslagent/cluster/peers/peer_way.h"

#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <uv.h>

#include "net/points/fault.h"

#define NANOSECONDS 1000000000
#define DOUBTS_MAX  8 /* in 1.5 seconds: a busy agent has answered by then */

static const struct socket_seen no_socket = { 0 };

static struct socket_seen way_look(const struct conf_agent *self, const struct conf_agent *peer)
{
	const char *path = peer->peer_socket;
	struct stat st;

	if (!path || strlen(path) >= sizeof(((struct sockaddr_un *)0)->sun_path) || stat(path, &st) != 0)
		return no_socket;
	if (fault_at("peer.socket", peer->name, NULL) == FAULT_FAIL)
		return no_socket;
	if (self->peer_socket && strcmp(self->peer_socket, path) == 0)
		return no_socket; /* the socket of another host with the same path */
	return (struct socket_seen){ .inode = st.st_ino,
		.changed_ns = (int64_t)st.st_ctim.tv_sec * NANOSECONDS + st.st_ctim.tv_nsec };
}

static bool way_is_another(struct socket_seen before, struct socket_seen now)
{
	return now.inode != 0 && (now.inode != before.inode || now.changed_ns != before.changed_ns);
}

/* A socket file alone does not prove that its agent runs here. The name in the link's opening proves it. */
void peer_way_address(
	struct peer_way *w, const struct conf_agent *self, const struct conf_agent *peer, struct sockaddr_storage *out)
{
	struct sockaddr_un *un = (struct sockaddr_un *)out;
	struct socket_seen now = way_look(self, peer);

	if (w->kind == PEER_BY_TCP && way_is_another(w->seen, now))
		w->kind = PEER_BY_UNIX;
	if (w->kind == PEER_BY_UNIX) {
		if (way_is_another(w->seen, now))
			w->doubts = w->is_proved = w->is_asked_again = 0;
		w->seen = now;
	}
	if (w->kind == PEER_BY_TCP || now.inode == 0) {
		w->kind = PEER_BY_TCP;
		*out = peer->peer;
		return;
	}
	*out = (struct sockaddr_storage){ .ss_family = AF_UNIX };
	strcpy(un->sun_path, peer->peer_socket);
}

/* Keep to the UNIX socket while somebody listens there: TCP would reach the same agent, which is busy. Only if all
 * attempts end, and it has never answered there, it may be another cluster's. */
bool peer_way_failed(struct peer_way *w, int uv_error)
{
	const bool is_nobody = uv_error == UV_ECONNREFUSED || uv_error == UV_ENOENT || uv_error == UV_EACCES;
	const bool is_doubtful = uv_error != UV_ETIMEDOUT && !w->is_proved;

	if (w->kind == PEER_BY_UNIX && (is_nobody || (is_doubtful && ++w->doubts >= DOUBTS_MAX))) {
		w->kind = PEER_BY_TCP;
		return true;
	}
	w->kind = PEER_BY_UNIX;
	return false;
}

bool peer_way_is_longer(struct peer_way *w, const struct conf_agent *self, const struct conf_agent *peer)
{
	const struct socket_seen now = way_look(self, peer);
	const bool is_first = !w->is_asked_again;

	w->is_asked_again = 1;
	return w->kind == PEER_BY_TCP && (way_is_another(w->seen, now) || (is_first && now.inode != 0));
}
