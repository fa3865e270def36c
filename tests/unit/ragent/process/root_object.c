/* root_object.c: see root_object.h. */
#include "root_object.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "net/report/log.h"
#include "tests/unit/proto/suite.h"

static const struct key_ring ring = { .count = 1, .keys = { { .id = "1" } } };
struct ragent_params params = { .link_key = &ring };
static struct conf *conf;
struct ragent *ragent;
char error[8192], control[128];

static const char file[] =
	"link_key: link.key\n"
	"agents_key: agents.key\n"
	"ragents: [ { name: r1, %s } ]\n"
	"agents: [ { name: a1, link: 'unix:%s/a1.link', peer: '127.0.0.1:7101' } ]\n"
	"certificates: [ { name: main, chain: main.pem, key: main.key } ]\n"
	"backends: [ { name: web, address: '127.0.0.1:8080' } ]\n"
	"listeners: [ { name: sf, listen: [ '%s' ], backend: web, tls: { certificates: [ main ] } } ]\n";

void read_file(const char *listen, const char *keys)
{
	char text[2048];

	snprintf(text, sizeof text, file, keys, temp_dir(), listen);
	conf_destroy(conf);
	ck_assert_msg(conf_parse(text, strlen(text), "c.yaml", &conf, error, sizeof error) == 0, "%s", error);
	params.conf = conf;
	params.self = &conf->ragents[0];
}

const char *with_control(void)
{
	static char keys[256];

	snprintf(control, sizeof control, "%s/%d.sock", temp_dir(), (int)getpid());
	snprintf(keys, sizeof keys, "workers: 2, control: '%s'", control);
	return keys;
}

void starts(const char *listen, const char *keys)
{
	read_file(listen, keys);
	ragent = ragent_create(&params, error, sizeof error);
	ck_assert_msg(ragent != NULL, "%s", error);
}

void ends(void)
{
	raise(SIGTERM);
	ck_assert_int_eq(ragent_run(ragent), 0);
	ck_assert_uint_eq(ragent->running, 0);
	ragent_destroy(ragent);
	ragent = NULL;
}

/* libuv opens some descriptors with the first loop, for good. */
static void begin(void)
{
	worker_destroy(worker_create(0, "first"));
}

static void end(void)
{
	ragent_destroy(ragent);
	ragent = NULL;
	conf_destroy(conf);
	conf = NULL;
	params = (struct ragent_params){ .link_key = &ring };
}

int connect_to(const struct sockaddr *to)
{
	const int fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (connect(fd, to, address_len(to)) == 0)
		return fd;
	close(fd);
	return -1;
}

int connect_to_path(const char *path)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX };

	snprintf(to.sun_path, sizeof to.sun_path, "%s", path);
	return connect_to((const struct sockaddr *)&to);
}

struct sockaddr_storage bound(void)
{
	return ragent->shared.fronts[0].bound[0];
}

const char *bound_text(void)
{
	static char text[ADDRESS_TEXT_MAX];
	const struct sockaddr_storage at = bound();

	return address_format((const struct sockaddr *)&at, text);
}

const char *free_port(void)
{
	static char text[ADDRESS_TEXT_MAX];
	struct sockaddr_storage at;

	close(socket_listen(OVER_TCP4, &at));
	return address_format((const struct sockaddr *)&at, text);
}

int connect_to_text(const char *text)
{
	struct sockaddr_storage at;

	ck_assert_int_eq(address_parse(text, &at), 0);
	return connect_to((const struct sockaddr *)&at);
}

/* Made and removed outside of the facts' own processes: as another user these can remove nothing. */
static void make_folder(void)
{
	ck_assert_int_eq(chmod(temp_dir(), 0755), 0);
}

int root_object_suite_run(const char *name, const TTest *const *facts, size_t count)
{
	TCase *all = tcase_create(name);

	log_set_level(LOG_ERROR + 1);
	tcase_add_unchecked_fixture(all, make_folder, temp_dir_remove);
	tcase_add_checked_fixture(all, begin, end);
	return suite_run_case(name, all, facts, count);
}
