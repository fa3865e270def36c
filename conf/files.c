/* files.c: checks the files, folders and users that a configuration file names on this host. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <limits.h>
#include <pwd.h>
#include <sodium.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <sys/un.h>
#include <unistd.h>

#include "conf/complaints.h"
#include "conf/conf.h"
#include "conf/key_file.h"
#include "conf/smtpproxy.h"
#include "net/report/log_file.h"
#include "proto/error.h"

#define WHY_MAX 512u

struct checker {
	struct complaints complaints;
	struct complaints *unread; /* what another host or user may have; NULL: all is of this host and user */
	const struct conf *conf;
	const struct conf_file *file;
};

static struct checker checker_begin(const struct conf *c, char *error, size_t error_cap)
{
	struct checker k = { .conf = c, .file = &c->file };
	complaints_start(&k.complaints, c->file.path, error, error_cap);
	return k;
}

static int checker_end(const struct checker *k)
{
	return k->complaints.count > 0 ? CSSL_E_CONFIG : 0;
}

static bool checker_may(const char *path, int mode)
{
	return faccessat(AT_FDCWD, path, mode, AT_EACCESS) == 0;
}

/* Where to complain of the file @path; of what only its own host can tell if @path is NULL. */
static struct complaints *checker_about(struct checker *k, const char *path)
{
	return k->unread && !(path && checker_may(path, R_OK)) ? k->unread : &k->complaints;
}

/* @field: the member that has the path, for its line number. */
static void check_ring(struct checker *k, const char *key, char *const *field)
{
	char why[WHY_MAX];
	struct key_ring *ring = conf_read_key(*field, why, sizeof why);
	if (!ring)
		complain_plain(checker_about(k, *field), conf_line(k->file, field), "key '%s': %s", key, why);
	sodium_free(ring);
}

static void check_opens(struct checker *k, const char *key, enum key_file_kind kind, char *const *field)
{
	char why[WHY_MAX];
	int fd = *field ? key_file_open(*field, kind, why, sizeof why) : -1;
	if (fd >= 0)
		close(fd);
	else if (*field)
		complain_plain(checker_about(k, *field), conf_line(k->file, field), "key '%s': %s", key, why);
}

/* The file itself will be made in its folder. One in /run may be made by the service manager, at the start. */
static void check_folder(struct checker *k, const char *key, const void *field, const char *path)
{
	const char *slash = path ? strrchr(path, '/') : NULL;
	char folder[PATH_MAX];
	snprintf(folder, sizeof folder, "%.*s/", slash ? (int)(slash - path) : 1, slash ? path : ".");
	if (path && !checker_may(folder, W_OK | X_OK) && (errno != ENOENT || strncmp(folder, "/run/", 5) != 0))
		complain_value(checker_about(k, NULL), conf_line(k->file, field), key, path,
			"a path in a folder that this user can write: %s", strerror(errno));
}

static void check_socket(struct checker *k, const char *key, const struct sockaddr_storage *address)
{
	if (address->ss_family == AF_UNIX)
		check_folder(k, key, address, ((const struct sockaddr_un *)address)->sun_path);
}

/* As the daemon opens it, but it is not made. */
static void check_log(struct checker *k, const char *key, char *const *field)
{
	const int r = *field ? log_try_file(*field) : 0;
	if (r == -ENOENT)
		check_folder(k, key, field, *field);
	else if (r < 0)
		complain_value(checker_about(k, NULL), conf_line(k->file, field), key, *field,
			"a file to which lines can be appended, and no link: %s", strerror(-r));
}

/* Only root becomes another user. */
static void check_user(struct checker *k, char *const *user)
{
	if (*user && (k->unread || geteuid() == 0) && !getpwnam(*user))
		complain_value(checker_about(k, NULL), conf_line(k->file, user), "user", *user, "a user of this host");
}

static void check_ragent(struct checker *k, const struct conf_ragent *r)
{
	check_folder(k, "control", &r->control, r->control);
	check_socket(k, "control_address", &r->control_address);
	check_log(k, "access_log", &r->access_log);
	check_user(k, &r->user);
}

/* Root gives sockets to every group, others to groups of theirs. */
static bool may_give_to(gid_t group)
{
	return geteuid() == 0 || group == getegid() || group_member(group);
}

static void check_agent(struct checker *k, const struct conf_agent *a)
{
	const struct group *g = a->link_group ? getgrnam(a->link_group) : NULL;
	check_socket(k, "link", &a->link);
	if (a->link_group && (!g || (!k->unread && !may_give_to(g->gr_gid))))
		complain_value(checker_about(k, NULL), conf_line(k->file, &a->link_group), "link_group", a->link_group,
			"a group of this %s", g ? "user" : "host");
	check_folder(k, "peer_socket", &a->peer_socket, a->peer_socket);
	check_log(k, "access_log", &a->access_log);
	check_user(k, &a->user);
}

static void check_certificates(struct checker *k)
{
	const struct conf *c = k->conf;
	for (size_t i = 0; i < c->certificate_count; i++) {
		check_opens(k, "chain", KEY_FILE_PUBLIC, &c->certificates[i].chain);
		check_opens(k, "key", KEY_FILE_PEM, &c->certificates[i].key);
	}
	for (size_t i = 0; i < c->listener_count; i++) {
		check_opens(k, "client_ca", KEY_FILE_PUBLIC, &c->listeners[i].tls.client_ca);
		check_opens(k, "client_crl", KEY_FILE_PUBLIC, &c->listeners[i].tls.client_crl);
	}
}

static void check_keys_and_log(struct checker *k, enum conf_reader who)
{
	const struct conf *c = k->conf;
	check_ring(k, "link_key", &c->link_key);
	check_log(k, "path", &c->log.path);
	if (who == CONF_FOR_AGENT)
		check_ring(k, "agents_key", &c->agents_key);
}

int conf_check_files(const struct conf *c, enum conf_reader who, char *error, size_t error_cap)
{
	struct checker k = checker_begin(c, error, error_cap);
	if (who == CONF_FOR_RELOAD)
		check_certificates(&k);
	else
		check_keys_and_log(&k, who);
	return checker_end(&k);
}

int conf_check_node(
	const struct conf *c, const struct conf_ragent *r, const struct conf_agent *a, char *error, size_t error_cap)
{
	struct checker k = checker_begin(c, error, error_cap);
	if (r)
		check_ragent(&k, r);
	if (a)
		check_agent(&k, a);
	return checker_end(&k);
}

int conf_check_anywhere(const struct conf *c, char *error, size_t error_cap, char *unread, size_t unread_cap)
{
	struct checker k = checker_begin(c, error, error_cap);
	struct complaints elsewhere;
	complaints_start(&elsewhere, c->file.path, unread, unread_cap);
	k.unread = &elsewhere;
	check_keys_and_log(&k, CONF_FOR_AGENT);
	check_certificates(&k);
	for (size_t i = 0; i < c->ragent_count; i++)
		check_ragent(&k, &c->ragents[i]);
	for (size_t i = 0; i < c->agent_count; i++)
		check_agent(&k, &c->agents[i]);
	return checker_end(&k);
}

int conf_smtpproxy_check_files(const struct conf_smtpproxy *c, char *error, size_t error_cap)
{
	struct checker k = { .file = &c->file };
	complaints_start(&k.complaints, c->file.path, error, error_cap);
	check_log(&k, "path", &c->log.path);
	check_log(&k, "events", &c->events);
	check_folder(&k, "control", &c->control, c->control);
	check_folder(&k, "status", &c->status, c->status);
	check_folder(&k, "handover", &c->handover, c->handover);
	check_user(&k, &c->user);
	return checker_end(&k);
}

/* --- addresses of this host --- */

/* Tried at a port that the kernel chooses. Where it lets programs use addresses that are yet to come
 * (net.ipv4.ip_nonlocal_bind), all are good. */
static bool address_is_here(const struct sockaddr_storage *address)
{
	struct sockaddr_storage any_port = *address;
	struct sockaddr *a = (struct sockaddr *)&any_port;
	const int fd = socket(a->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	address_set_port(a, 0);
	const bool is_not = fd < 0 ? errno == EAFNOSUPPORT : bind(fd, a, address_len(a)) < 0 && errno == EADDRNOTAVAIL;
	if (fd >= 0)
		close(fd);
	return !is_not;
}

static void check_address(
	struct complaints *k, const struct conf_smtpproxy *c, const char *key, const struct sockaddr_storage *address)
{
	char text[ADDRESS_TEXT_MAX];
	if (address->ss_family != AF_UNIX && !address_is_here(address))
		complain_value(k, conf_line(&c->file, address), key,
			address_format((const struct sockaddr *)address, text), "an address of this host");
}

int conf_smtpproxy_check_host(const struct conf_smtpproxy *c, char *error, size_t error_cap)
{
	struct complaints k;
	complaints_start(&k, c->file.path, error, error_cap);
	for (size_t i = 0; i < c->listener_count; i++)
		check_address(&k, c, "listeners.address", &c->listeners[i].address);
	for (size_t i = 0; i < c->outward.source_count; i++)
		check_address(&k, c, "outward.sources.address", &c->outward.sources[i].address);
	return k.count > 0 ? CSSL_E_CONFIG : 0;
}
