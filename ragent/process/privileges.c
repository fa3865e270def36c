/* privileges.c: changes from root to an ordinary user, once, and checks what that user can still read. */
#include "ragent/process/privileges.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "net/process/user.h"
#include "net/report/log.h"
#include "proto/error.h"

int privileges_drop(const char *user, enum privileges *out, char *error, size_t error_cap)
{
	const char *name = user ? user : CONF_RAGENT_USER_DEFAULT;

	*out = PRIVILEGES_ORDINARY;
	if (geteuid() != 0)
		return 0;
	*out = PRIVILEGES_DROPPED;
	return user_become(name, USER_KEEPS_NOTHING, error, error_cap);
}

int privileges_check_key(const char *path, enum privileges p, char *error, size_t error_cap)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return 0;
	close(fd);
	if (p == PRIVILEGES_ORDINARY) {
		log_event(LOG_WARNING, NULL, "agents key readable",
			"path=%s remedy=\"start as root, or give agents a user of their own\"", path);
		return 0;
	}
	snprintf(error, error_cap, "%s: this process can read it, and must not: give it to the agents' user, mode 0600",
		path);
	return CSSL_E_CONFIG;
}

int privileges_settle(const struct conf *c, const struct conf_ragent *self, char *error, size_t error_cap)
{
	enum privileges p;
	int r = privileges_drop(self->user, &p, error, error_cap);

	if (r == 0)
		r = privileges_check_key(c->agents_key, p, error, error_cap);
	for (size_t i = 0; r == 0 && p == PRIVILEGES_DROPPED && i < c->certificate_count; i++)
		r = privileges_check_key(c->certificates[i].key, p, error, error_cap);
	user_warn_of(c->log.path, W_OK, USER_SAME_LOG);
	user_warn_of(self->access_log, W_OK, USER_SAME_LOG);
	user_warn_of(self->control_tokens, R_OK,
		"a reload keeps the old ones, and the next process after a death does not serve control_address: chmod "
		"644, the file has only hashes");
	return r;
}
