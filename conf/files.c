/* files.c: checks the files, folders and users that the cluster file names on this host. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "conf/complaints.h"
#include "conf/conf.h"
#include "conf/key_file.h"
#include "proto/error.h"

#define WHY_MAX 512u

struct checker {
	struct complaints complaints;
	const struct conf *conf;
};

/* @field: the member of struct conf that has the path, for its line number. */
static void check_ring(struct checker *k, const char *key, char *const *field)
{
	char why[WHY_MAX];
	struct key_ring *ring = conf_read_key(*field, why, sizeof why);
	if (!ring)
		complain_plain(&k->complaints, conf_line(k->conf, field), "key '%s': %s", key, why);
	sodium_free(ring);
}

static void check_opens(struct checker *k, const char *key, enum key_file_kind kind, char *const *field)
{
	char why[WHY_MAX];
	int fd = key_file_open(*field, kind, why, sizeof why);
	if (fd >= 0)
		close(fd);
	else
		complain_plain(&k->complaints, conf_line(k->conf, field), "key '%s': %s", key, why);
}

/* The file itself will be made: its folder must be there. */
static void check_folder(struct checker *k, const char *key, const void *field, const char *path)
{
	struct stat st;
	const char *slash = strrchr(path, '/');
	char *folder = slash && slash != path ? strndup(path, (size_t)(slash - path)) : strdup(slash ? "/" : ".");
	if (!folder)
		complain_plain(&k->complaints, 0, "out of memory");
	else if (stat(folder, &st) != 0)
		complain_value(&k->complaints, conf_line(k->conf, field), key, path,
			"a path in a folder that is there: %s", strerror(errno));
	else if (!S_ISDIR(st.st_mode))
		complain_value(&k->complaints, conf_line(k->conf, field), key, path, "a path in a folder");
	free(folder);
}

static void check_socket(struct checker *k, const char *key, const struct sockaddr_storage *address)
{
	if (address->ss_family == AF_UNIX)
		check_folder(k, key, address, ((const struct sockaddr_un *)address)->sun_path);
}

static void check_ragent(struct checker *k, const struct conf_ragent *r)
{
	if (r->control)
		check_folder(k, "control", &r->control, r->control);
	if (r->access_log)
		check_folder(k, "access_log", &r->access_log, r->access_log);
	if (r->user && !getpwnam(r->user))
		complain_value(&k->complaints, conf_line(k->conf, &r->user), "user", r->user, "a user of this host");
}

static void check_agent(struct checker *k, const struct conf_agent *a)
{
	check_socket(k, "link", &a->link);
	if (a->link_group && !getgrnam(a->link_group))
		complain_value(&k->complaints, conf_line(k->conf, &a->link_group), "link_group", a->link_group,
			"a group of this host");
	if (a->peer_socket)
		check_folder(k, "peer_socket", &a->peer_socket, a->peer_socket);
}

/* An agent judges their content, too (tls_contexts.h). */
static void check_certificates(struct checker *k)
{
	const struct conf *c = k->conf;
	for (size_t i = 0; i < c->certificate_count; i++) {
		check_opens(k, "chain", KEY_FILE_PUBLIC, &c->certificates[i].chain);
		check_opens(k, "key", KEY_FILE_PEM, &c->certificates[i].key);
	}
	for (size_t i = 0; i < c->listener_count; i++) {
		if (c->listeners[i].tls.client_ca)
			check_opens(k, "client_ca", KEY_FILE_PUBLIC, &c->listeners[i].tls.client_ca);
		if (c->listeners[i].tls.client_crl)
			check_opens(k, "client_crl", KEY_FILE_PUBLIC, &c->listeners[i].tls.client_crl);
	}
}

/* Check the files of every node. This is right only if all nodes run on this host. */
static void check_nodes(struct checker *k)
{
	for (size_t i = 0; i < k->conf->ragent_count; i++)
		check_ragent(k, &k->conf->ragents[i]);
	for (size_t i = 0; i < k->conf->agent_count; i++)
		check_agent(k, &k->conf->agents[i]);
}

int conf_check_files(const struct conf *c, enum conf_reader who, char *error, size_t error_cap)
{
	struct checker k = { .conf = c };
	complaints_start(&k.complaints, c->path, error, error_cap);
	check_ring(&k, "link_key", &c->link_key);
	if (c->log.path)
		check_folder(&k, "path", &c->log.path, c->log.path);
	if (who != CONF_FOR_RAGENT)
		check_ring(&k, "agents_key", &c->agents_key);
	if (who == CONF_FOR_ALL) {
		check_certificates(&k);
		check_nodes(&k);
	}
	return k.complaints.count > 0 ? CSSL_E_CONFIG : 0;
}
