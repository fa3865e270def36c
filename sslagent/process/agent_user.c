/* agent_user.c: an agent that root starts becomes its user, and checks what that user can still read. */
#include "sslagent/process/agent_user.h"

#include <pwd.h>
#include <stdio.h>
#include <unistd.h>

#include "net/listener.h"
#include "net/log.h"
#include "net/user.h"

#define MESSAGE_MAX 1024u

int agent_become_user(const struct conf *conf, const struct conf_agent *self, char *error, size_t error_cap)
{
	if (geteuid() != 0 || !self->user)
		return 0;
	const int r = user_become(self->user, USER_KEEPS_GROUPS, error, error_cap);
	user_warn_of(conf->log.path, W_OK, USER_SAME_LOG);
	user_warn_of(self->access_log, W_OK, USER_SAME_LOG);
	return r == 0 ? conf_check_files(conf, CONF_FOR_RELOAD, error, error_cap) : r;
}

/* Other agents reach the peer socket as that user. */
int agent_give_up_root(const struct conf *conf, const struct conf_agent *self)
{
	const char *name = self->user, *socket = self->peer_socket;
	const struct passwd *user = geteuid() == 0 && name && socket ? getpwnam(name) : NULL;
	char message[MESSAGE_MAX] = "peer_socket: something else is in its place";
	int r = user ? listener_give_file(socket, user->pw_uid, user->pw_gid) : 0;

	if (r == 0)
		r = agent_become_user(conf, self, message, sizeof message);
	if (r < 0)
		fprintf(stderr, "sslagent: %s\n", message);
	if (geteuid() == 0)
		log_event(LOG_WARNING, NULL, "runs as root", "remedy=\"key 'user' of it, or User= of its unit\"");
	return r;
}
