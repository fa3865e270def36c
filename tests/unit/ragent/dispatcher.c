/* dispatcher.c: see dispatcher.h. */
#include "tests/unit/ragent/dispatcher.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <sodium.h>

#include "net/limits/admission.h"
#include "net/report/log.h"
#include "net/socket/address.h"
#include "ragent/keeper/notes.h"
#include "ragent/link/link_internal.h"

#define TABLE_LEN (16u << 20)

struct dispatcher d;

/* --- start and stop --- */

static const char *const cluster_head = "link_key: link.key\n"
					"agents_key: agents.key\n"
					"ragents:\n"
					"  - name: r1\n"
					"certificates:\n"
					"  - { name: main, chain: main.pem, key: main.key }\n"
					"backends:\n"
					"  - { name: web, address: 127.0.0.1:8080 }\n"
					"limits:\n"
					"  window: 64KiB\n";

static size_t add_text(char *text, size_t cap, const char *what)
{
	size_t len = strlen(text);

	ck_assert_uint_lt(len + strlen(what), cap);
	memcpy(text + len, what, strlen(what) + 1);
	return len + strlen(what);
}

static void add_listener(char *text, size_t cap, const char *name, const char *lines)
{
	char line[512];

	snprintf(line, sizeof line,
		"  - name: %s\n    listen: [ 127.0.0.1:0 ]\n    backend: web\n    tls: { certificates: [ main ] }\n",
		name);
	add_text(text, cap, line);
	add_text(text, cap, lines);
}

static void load_conf(const struct dispatcher_wish *wish, unsigned agents)
{
	static char text[8192], error[2048];
	char line[512];

	snprintf(text, sizeof text, "%s%s", cluster_head, wish->limits ? wish->limits : "");
	add_text(text, sizeof text, "health:\n");
	add_text(text, sizeof text, wish->health ? wish->health : "  ping: 20ms\n  suspect: 2s\n  lost: 4s\n");
	if (wish->moves) {
		add_text(text, sizeof text, "moves:\n");
		add_text(text, sizeof text, wish->moves);
	}
	add_text(text, sizeof text, "agents:\n");
	for (unsigned i = 0; i < agents; i++) {
		snprintf(line, sizeof line,
			"  - { name: a%u, link: 'unix:%s/a%u.link', link_protection: %s, peer: '127.0.0.1:%u' }\n", i,
			temp_dir(), i, wish->protection == LINK_SEALED ? "sealed" : "trusted", 7100 + i);
		add_text(text, sizeof text, line);
	}
	add_text(text, sizeof text, "listeners:\n");
	add_listener(text, sizeof text, "sf", wish->listener ? wish->listener : "    affinity_bound: off\n");
	add_listener(text, sizeof text, "sl", "    mode: sl\n");
	add_listener(text, sizeof text, "still", "    migration: off\n");
	add_listener(text, sizeof text, "proxied", "    proxy_protocol: on\n    trusted: [ 127.0.0.0/8 ]\n");
	add_listener(text, sizeof text, "distrusted", "    proxy_protocol: on\n    trusted: [ 10.0.0.0/8 ]\n");
	int r = conf_parse(text, strlen(text), "c.yaml", &d.conf, error, sizeof error);
	ck_assert_msg(r == 0, "%s", error);
}

static void make_shared(void)
{
	struct ragent_shared *s = &d.shared;

	s->conf = d.conf;
	s->self = &d.conf->ragents[0];
	s->link_key = &d.ring;
	s->boot_id = 1;
	s->agents = agents_create(d.conf);
	s->admission = admission_create(s->self->limits.connections, s->self->limits.connections_per_source);
	s->fronts = calloc(d.conf->listener_count, sizeof *s->fronts);
	for (; s->front_count < d.conf->listener_count; s->front_count++)
		ck_assert_int_eq(front_init(&s->fronts[s->front_count], s->front_count, d.conf), 0);
}

void dispatcher_start(const struct dispatcher_wish *wish)
{
	static const struct dispatcher_wish nothing;
	char path[128], name[16], error[256] = "";

	wish = wish ? wish : &nothing;
	unsigned agents = wish->agents ? wish->agents : AGENTS;
	memset(&d, 0, sizeof d);
	d.ring.count = 1;
	snprintf(d.ring.keys[0].id, sizeof d.ring.keys[0].id, "k1");
	randombytes_buf(d.ring.keys[0].key, KEY_LEN);
	load_conf(wish, agents);
	make_shared();
	if (wish->streams == LINK_STREAMS_OUTLIVE)
		d.shared.notes = notes_create(2, 64);
	if (wish->memory == MEMORY_OUTLIVES)
		d.shared.notes->table = slot_table_create(TABLE_LEN, connection_len());
	for (unsigned i = 0; i < agents; i++) {
		snprintf(name, sizeof name, "a%u", i);
		snprintf(path, sizeof path, "%s/a%u.link", temp_dir(), i);
		d.agents[i] = fake_agent_start(name, path, &d.ring, wish->protection ? wish->protection : LINK_TRUSTED);
		if (wish->bytes == LINK_BYTES_IN_MEMORY)
			fake_agent_share(d.agents[i]);
		if (wish->processes == AGENTS_NAME_THEMSELVES)
			fake_agent_name_itself(d.agents[i]);
	}
	d.rw = ragent_worker_create(&d.shared, w);
	ck_assert_ptr_nonnull(d.rw);
	ck_assert_msg(ragent_worker_listen(d.rw, NULL, error, sizeof error) == 0, "%s", error);
	ck_assert_int_eq(ragent_worker_start(d.rw), 0);
	wait_until(agents_up() == agents);
}

pid_t agent_becomes_child(int agent)
{
	struct peer_process *p = &d.rw->home.links.of[agent].at[0]->process;
	const pid_t child = fork();

	if (child == 0)
		close_range(3, ~0u, 0); /* else it holds links open */
	while (child == 0)
		pause();
	peer_process_forget(p);
	p->pidfd = pidfd_open(child, 0);
	ck_assert_int_ge(p->pidfd, 0);
	return child;
}

void child_dies(pid_t child)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

static void on_worker_closed(struct ragent_worker *rw)
{
}

void dispatcher_stop(void)
{
	if (d.before_stop)
		d.before_stop();
	if (d.rw) {
		ragent_worker_stop(d.rw, 0, on_worker_closed);
		ragent_worker_stop(d.rw, 0, on_worker_closed);
		wait_until(d.rw->state == RAGENT_WORKER_CLOSED);
	}
	for (unsigned i = 0; i < AGENTS; i++)
		fake_agent_stop(d.agents[i]);
	turns(4);
	ck_assert_uint_eq(admission_total(d.shared.admission), 0);
	for (unsigned i = 0; i < agents_count(d.shared.agents); i++) {
		struct agent_status s;
		agents_status(d.shared.agents, (int)i, &s);
		ck_assert_uint_eq(s.connections + s.handshakes + s.links_up + s.links_suspect, 0);
	}
	ragent_worker_destroy(d.rw);
	if (d.shared.notes)
		slot_table_destroy(d.shared.notes->table);
	notes_destroy(d.shared.notes);
	for (size_t i = 0; i < d.shared.front_count; i++)
		front_clear(&d.shared.fronts[i]);
	free(d.shared.fronts);
	admission_destroy(d.shared.admission);
	agents_destroy(d.shared.agents);
	conf_destroy(d.conf);
}

static void setup(void)
{
	log_set_level(getenv("CSSL_TEST_LOG") ? LOG_DEBUG : LOG_ERROR + 1);
	setup_worker();
}

static void teardown(void)
{
	dispatcher_stop();
	teardown_worker();
}

int dispatcher_suite_run(const char *name, const TTest *const *facts, size_t count)
{
	Suite *suite = suite_create(name);
	TCase *all = tcase_create(name);

	if (sodium_init() < 0)
		return EXIT_FAILURE;
	suite_add_tcase(suite, all);
	tcase_set_timeout(all, 60);
	tcase_add_checked_fixture(all, setup, teardown);
	for (size_t i = 0; i < count; i++)
		tcase_add_test(all, facts[i]);
	SRunner *runner = srunner_create(suite);
	srunner_run_all(runner, CK_ENV);
	int failed = srunner_ntests_failed(runner);
	srunner_free(runner);
	return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}

size_t agents_up(void)
{
	return links_candidates(&d.rw->home.links, NO_AGENT);
}

/* --- clients --- */

static const struct front *front_of(const char *listener)
{
	for (size_t i = 0; i < d.shared.front_count; i++)
		if (strcmp(d.shared.fronts[i].conf->name, listener) == 0)
			return &d.shared.fronts[i];
	ck_abort_msg("no listener %s", listener);
	return NULL;
}

int client_connect(const char *listener)
{
	const struct sockaddr *to = (const struct sockaddr *)&front_of(listener)->bound[0];
	int fd = socket(to->sa_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(connect(fd, to, address_len(to)), 0);
	fcntl(fd, F_SETFL, O_NONBLOCK);
	return fd;
}

size_t record_make(uint8_t *out, uint8_t type, uint16_t body, uint8_t fill)
{
	tls_record_header_write(out, type, TLS12_VERSION_WIRE, body);
	memset(out + TLS_RECORD_HEADER_LEN, fill, body);
	if (type == TLS_HANDSHAKE)
		out[TLS_RECORD_HEADER_LEN] = 2; /* no hello: RAgent gives it to an agent, as it gives a hello */
	return RECORD_OF((size_t)body);
}

void client_send_record(int fd, uint8_t type, uint16_t body, uint8_t fill)
{
	static uint8_t record[TLS_RECORD_MAX];

	write_all(fd, record, record_make(record, type, body, fill));
}

void client_expect(int fd, const void *bytes, size_t len)
{
	uint8_t *got = malloc(len);

	ck_assert_ptr_nonnull(got);
	read_exactly(fd, got, len);
	ck_assert_mem_eq(got, bytes, len);
	free(got);
}

void client_expect_fin(int fd)
{
	ck_assert_int_eq(read_to_end(fd), 0);
}

void client_expect_reset(int fd)
{
	ck_assert_int_eq(read_to_end(fd), -1);
}

void client_expect_refusal(int fd)
{
	static const uint8_t internal_error[] = { TLS_ALERT, 3, 3, 0, 2, TLS_ALERT_FATAL, TLS_ALERT_INTERNAL_ERROR };

	client_expect(fd, internal_error, sizeof internal_error);
	client_expect_fin(fd);
}

struct connection *connection_only(void)
{
	struct connection *c = connection_newest();

	ck_assert_ptr_null(c->next);
	return c;
}

struct connection *connection_newest(void)
{
	ck_assert_ptr_nonnull(d.rw->home.connections);
	return d.rw->home.connections;
}

/* --- frames --- */

static struct fake_frame *take_anywhere(enum frame_type type, int *agent)
{
	for (*agent = 0; *agent < AGENTS; ++*agent) {
		struct fake_frame *f = d.agents[*agent] ? fake_agent_take(d.agents[*agent], type) : NULL;
		if (f)
			return f;
	}
	return NULL;
}

struct fake_frame *frame_anywhere(enum frame_type type, int *agent)
{
	struct fake_frame *f = NULL;

	wait_until((f = take_anywhere(type, agent)) != NULL);
	return f;
}

struct fake_frame *frame_at(int agent, enum frame_type type)
{
	struct fake_frame *f = NULL;

	wait_until((f = fake_agent_take(d.agents[agent], type)) != NULL);
	return f;
}

void no_frame(enum frame_type type)
{
	int agent;

	turns(20);
	ck_assert_ptr_null(take_anywhere(type, &agent));
}

/* --- a connection's way --- */

void hello_send(struct live_connection *l, const char *listener, Cssl__LinkOpen__Disposition *asked)
{
	*l = (struct live_connection){ .fd = client_connect(listener) };
	client_send_record(l->fd, TLS_HANDSHAKE, 200, 1);
	struct fake_frame *f = frame_anywhere(FRAME_OPEN, &l->agent);
	Cssl__LinkOpen *open = cssl__link_open__unpack(NULL, f->len, f->payload);
	ck_assert_ptr_nonnull(open);
	ck_assert_str_eq(open->listener, listener);
	if (asked)
		*asked = open->disposition;
	cssl__link_open__free_unpacked(open, NULL);
	l->stream = f->stream;
	l->handshake_agent = l->agent;
	free(f);
	wait_until(fake_agent_data_len(d.agents[l->agent], l->stream) == RECORD_OF(200));
}

void server_send(struct live_connection *l, uint8_t type, uint16_t body, uint8_t fill, uint8_t flags)
{
	static uint8_t record[TLS_RECORD_MAX];
	size_t len = record_make(record, type, body, fill);

	fake_agent_send(d.agents[l->agent], l->stream, FRAME_DATA, flags, record, len);
	client_expect(l->fd, record, len);
	l->server_records++;
	l->write_sequence++;
}

void live_say(
	struct live_connection *l, enum frame_type type, int at_checkpoint, Cssl__BackendHalf backend, const char *copy)
{
	Cssl__LinkLive live = CSSL__LINK_LIVE__INIT;
	Cssl__Position p = CSSL__POSITION__INIT;
	Cssl__Handshake h = CSSL__HANDSHAKE__INIT;

	p.client_records = l->client_records;
	p.server_records = l->server_records;
	p.write_sequence = l->write_sequence;
	p.read_sequence = l->client_records > 2 ? l->client_records - 2 : 0;
	h.protocol_version = l->version ? l->version : TLS13_VERSION_WIRE;
	h.cipher_suite = 0x1301;
	live.position = &p;
	live.handshake = connection_newest()->now.agreed ? NULL : &h;
	live.at_checkpoint = at_checkpoint;
	live.backend = backend;
	live.sealed_copy = (ProtobufCBinaryData){ strlen(copy), (uint8_t *)copy };
	fake_agent_say(d.agents[l->agent], l->stream, type, &live.base);
}

void handshake_finish(struct live_connection *l)
{
	server_send(l, TLS_HANDSHAKE, 100, 2, 0);
	client_send_record(l->fd, TLS_APPLICATION_DATA, 50, 3);
	wait_until(fake_agent_data_len(d.agents[l->agent], l->stream) == RECORD_OF(200) + RECORD_OF(50));
	l->client_records = 2;
	l->write_sequence = 0;
}

void connection_keep(struct live_connection *l, const char *listener, int at_checkpoint)
{
	uint8_t seen[1024];

	hello_send(l, listener, NULL);
	handshake_finish(l);
	fake_agent_take_data(d.agents[l->agent], l->stream, seen, sizeof seen);
	live_say(l, FRAME_KEPT, at_checkpoint, CSSL__BACKEND_HALF__BACKEND_NONE, "copy of the handshake agent");
	wait_until(connection_newest()->now.state == CONNECTION_OWNED);
}

Cssl__LinkSslId *ssl_id_take(struct live_connection *l, int agent)
{
	struct fake_frame *f = agent < 0 ? frame_anywhere(FRAME_SSL_ID, &agent) : frame_at(agent, FRAME_SSL_ID);
	Cssl__LinkSslId *id = cssl__link_ssl_id__unpack(NULL, f->len, f->payload);

	ck_assert_ptr_nonnull(id);
	l->agent = agent;
	l->stream = f->stream;
	free(f);
	return id;
}

void adopted_say(struct live_connection *l, uint32_t epoch)
{
	Cssl__LinkAdopted a = CSSL__LINK_ADOPTED__INIT;

	a.epoch = epoch;
	fake_agent_say(d.agents[l->agent], l->stream, FRAME_ADOPTED, &a.base);
	wait_until(connection_newest()->now.state == CONNECTION_OWNED);
}

enum end_reason goodbye_say(struct live_connection *l)
{
	struct fake_frame *f = frame_at(l->agent, FRAME_FINISH);
	uint8_t reason = f->payload[0];

	ck_assert_uint_eq(f->stream, l->stream);
	free(f);
	server_send(l, TLS_ALERT, 2, 0, 0);
	fake_agent_end(d.agents[l->agent], l->stream, reason, 0);
	return (enum end_reason)reason;
}

void connection_hand_off(struct live_connection *l)
{
	Cssl__LinkOpen__Disposition asked = CSSL__LINK_OPEN__DISPOSITION__KEEP;

	/* round-robin comes to an agent that is not the affinity agent */
	while (asked == CSSL__LINK_OPEN__DISPOSITION__KEEP) {
		hello_send(l, "sf", &asked);
		if (asked == CSSL__LINK_OPEN__DISPOSITION__HAND_OFF)
			break;
		close(l->fd);
		wait_until(!d.rw->home.connections);
	}
	handshake_finish(l);
}
