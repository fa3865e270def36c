/* start.c: the steps that ragent, sslagent and smtpproxy have in common. */
#include "conf/start.h"

#include <errno.h>
#include <string.h>

#include <sodium.h>

#include "net/memory/random_pool.h"
#include "net/process/user.h"
#include "net/report/log.h"

#define FAULTS_MAX 8192u

int start_protected(const char *program)
{
	if (untraced_begin() < 0) {
		fprintf(stderr, "%s: other processes could read its memory: %s\n", program, strerror(errno));
		return -1;
	}
	if (random_pool_begin() < 0 || sodium_init() < 0) {
		fprintf(stderr, "%s: libsodium does not work here\n", program);
		return -1;
	}
	return 0;
}

struct conf *start_load(const char *path, enum conf_reader tier)
{
	char faults[FAULTS_MAX];
	struct conf *c = NULL;

	if (conf_load(path, &c, faults, sizeof faults) == 0 && conf_check_files(c, tier, faults, sizeof faults) == 0)
		return c;
	fprintf(stderr, "%s\n", faults);
	conf_destroy(c);
	return NULL;
}

int start_log(const char *program, const char *node, const struct conf_log *log, const char *access)
{
	if (log_open(program, node, log->format, log->level, log->path) == 0 &&
		(!access || log_open_access(access) == 0))
		return 0;
	fprintf(stderr, "%s: cannot open the log %s %s\n", program, log->path ? log->path : "", access ? access : "");
	return -1;
}
