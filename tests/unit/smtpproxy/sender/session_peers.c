/* session_peers.c: see session_peers.h. */
#include "session_peers.h"

#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "net/limits/admission.h"
#include "net/report/log.h"
#include "smtpproxy/events/event_log.h"
#include "smtpproxy/ledger/tx_before.h"
#include "smtpproxy/policy/destination_rules.h"
#include "tests/unit/smtpproxy/hooks/milter_peer.h"

struct sender_home home;
struct smtpproxy_counters *session_counters = &counters;
struct conf_smtpproxy *session_conf;
char heard[4096];

static struct outward_home outward_parts;
static struct replies replies;
static unsigned outward_stopped;
static int listening; /* as the receiver */
static struct {
	int fd; /* -1: none */
	uint64_t number;
} senders[SENDERS];
static int receivers[RECEIVERS];

static const char file[] = "name: mx.example\n"
			   "hooks: [ { name: a, address: 'unix:/a' } ]\n"
			   "outward: { local: [ 127.0.0.0/8 ], tls: none, any_port: on }\n"
			   "listeners:\n"
			   "  - { address: '127.0.0.1:1', trusted: [ 127.0.0.1/32 ], next_hop: '%s' }\n"
			   "  - { address: '127.0.0.1:2', trusted: [ 127.0.0.1/32 ], next_hop: '%s', hooks: [ a ] }\n"
			   "  - { address: '127.0.0.1:3', trusted: [ 127.0.0.1/32 ] }\n";

static void read_file(void)
{
	struct sockaddr_storage address;
	char text[1024], to[ADDRESS_TEXT_MAX], error[1024];

	listening = socket_listen(OVER_TCP4, &address);
	fcntl(listening, F_SETFL, O_NONBLOCK);
	address_format((const struct sockaddr *)&address, to);
	snprintf(text, sizeof text, file, to, to);
	ck_assert_msg(
		conf_smtpproxy_parse(text, strlen(text), "test", &session_conf, error, sizeof error) == 0, "%s", error);
	session_conf->hooks[0].address = hook_confs[0].address;
	session_conf->hooks[0].timeout_ms = WAIT_LIMIT_MS;
}

static void on_gone(struct sender_home *h)
{
	ck_assert_ptr_eq(h, &home);
}

static void create_home(void)
{
	outward_parts =
		(struct outward_home){ .worker = w, .conf = session_conf, .counters = &counters, .replies = &replies };
	home = (struct sender_home){ .worker = w, .conf = session_conf, .counters = &counters, .on_gone = on_gone };
	LIST_INIT(&home.sessions);
	LIST_INIT(&home.askers);
	body_room_begin(&home.held, session_conf->limits.held_total, NULL, NULL);
	hooks_init(&home.hooks, w, &counters);
	ck_assert_int_eq(hooks_prepare(&home.hooks, session_conf), 0);
	hooks_follow(&home.hooks, session_conf);
	home.rules = destination_rules_create(session_conf);
	home.admission = admission_create(10, 3);
	home.ledger = tx_ledger_create(100);
	home.before = tx_before_create(100);
	home.events = event_log_create(NULL, &counters.events_dropped);
	home.outward = outward_create(&outward_parts);
	ck_assert_int_eq(event_log_open(home.events), 0);
}

void sessions_setup(void)
{
	milter_setup();
	read_file();
	create_home();
	outward_stopped = 0;
	for (unsigned i = 0; i < SENDERS; i++)
		senders[i].fd = -1;
	for (unsigned i = 0; i < RECEIVERS; i++)
		receivers[i] = -1;
}

static void on_outward_stopped(void *ctx)
{
	outward_stopped++;
}

static void close_fd(int *fd)
{
	if (*fd >= 0)
		close(*fd);
	*fd = -1;
}

void sessions_teardown(void)
{
	struct session *s;

	while ((s = LIST_FIRST(&home.sessions))) {
		const unsigned before = home.count;
		if (s->state == SESSION_DECIDES || s->state == SESSION_ALONE)
			session_cut_decided(s);
		session_cut(s);
		wait_until(home.count < before || s->state == SESSION_LEAVES);
		for (unsigned i = 0; home.count == before && i < SENDERS; i++)
			close_fd(&senders[i].fd);
		wait_until(home.count < before);
	}
	outward_stop(home.outward, on_outward_stopped, NULL);
	for (unsigned i = 0; i < RECEIVERS; i++)
		close_fd(&receivers[i]);
	close(listening);
	wait_until(outward_stopped);
	outward_destroy(home.outward);
	admission_destroy(home.admission);
	destination_rules_destroy(home.rules);
	tx_ledger_destroy(home.ledger);
	tx_before_destroy(home.before);
	hooks_free(&home.hooks);
	event_log_destroy(home.events);
	for (unsigned i = 0; i < SENDERS; i++)
		close_fd(&senders[i].fd);
	hooks_teardown();
	conf_smtpproxy_destroy(session_conf);
}

/* Lines */

/* 1: a line is behind @len bytes of `heard`; 0: FIN; -1: reset. */
static int read_line(int fd, size_t *len)
{
	int end = 0;
	ssize_t n = 0;

	do {
		ck_assert_uint_lt(*len + 1, sizeof heard);
		wait_until((n = read_some(fd, heard + *len, 1, &end)) != 0 || end);
		*len += n > 0;
		heard[*len] = '\0';
	} while (n > 0 && heard[*len - 1] != '\n');
	return n > 0 ? 1 : (int)n;
}

static void hears_nothing(int fd)
{
	struct pollfd waiting = { .fd = fd, .events = POLLIN };

	for (unsigned i = 0; i < 5; i++)
		turn();
	ck_assert_int_eq(poll(&waiting, 1, 0), 0);
}

/* Senders */

struct session *session_of(unsigned n)
{
	struct session *s;

	LIST_FOREACH(s, &home.sessions, next)
	if (s->number == senders[n].number)
		break;
	return s;
}

int sender_fd(unsigned n)
{
	return senders[n].fd;
}

void sender_connects(unsigned n, enum door door)
{
	struct sockaddr_storage peer;
	int fds[2];

	socket_pair(OVER_TCP4, fds);
	ck_assert_int_lt(senders[n].fd, 0);
	senders[n].fd = fds[0];
	ck_assert_int_eq(address_parse("127.0.0.1:9", &peer), 0);
	session_open(&home, &session_conf->listeners[door], fds[1], &peer);
	senders[n].number = home.numbered;
}

void sender_comes_from(unsigned n, enum door door, const char *client)
{
	char header[128];

	sender_connects(n, door);
	snprintf(header, sizeof header, "PROXY TCP4 %s 198.51.100.25 1234 25\r\n", client);
	sender_says(n, header);
	sender_hears(n, "220 mx.example ESMTP\r\n");
}

void sender_comes(unsigned n, enum door door)
{
	sender_comes_from(n, door, "192.0.2.1");
}

void sender_says(unsigned n, const char *text)
{
	write_all(senders[n].fd, text, strlen(text));
}

void sender_hears(unsigned n, const char *beginning)
{
	size_t len = 0, line = 0;

	do {
		line = len;
		ck_assert_msg(read_line(senders[n].fd, &len) == 1, "the end instead of: %s", beginning);
	} while (heard[line + 3] == '-');
	ck_assert_msg(strncmp(heard, beginning, strlen(beginning)) == 0, "%sinstead of: %s", heard, beginning);
}

void sender_hears_end(unsigned n)
{
	size_t len = 0;
	int r = read_line(senders[n].fd, &len);

	ck_assert_msg(r == 0 && len == 0, "%d %s", r, heard);
}

void sender_hears_nothing(unsigned n)
{
	hears_nothing(senders[n].fd);
}

void sender_closes(unsigned n)
{
	close_fd(&senders[n].fd);
}

void sender_resets(unsigned n)
{
	reset(OVER_TCP4, senders[n].fd);
	senders[n].fd = -1;
}

/* The receiver */

int receiver_is_asked(void)
{
	struct pollfd waiting = { .fd = listening, .events = POLLIN };

	return poll(&waiting, 1, 0) > 0;
}

void receiver_accepts(unsigned n)
{
	ck_assert_int_lt(receivers[n], 0);
	wait_until((receivers[n] = accept4(listening, NULL, NULL, SOCK_NONBLOCK)) >= 0);
}

void receiver_greets(unsigned n, const char *offers)
{
	receiver_accepts(n);
	receiver_says(n, "220 receiver.example\r\n");
	receiver_hears(n, NULL);
	ck_assert_int_eq(strncmp(heard, "EHLO ", 5), 0);
	receiver_says(n, "250-receiver.example\r\n");
	receiver_says(n, offers);
}

void receiver_hears(unsigned n, const char *line)
{
	size_t len = 0;

	ck_assert_msg(read_line(receivers[n], &len) == 1, "the end instead of: %s", line);
	if (line)
		ck_assert_str_eq(heard, line);
}

void receiver_hears_nothing(unsigned n)
{
	hears_nothing(receivers[n]);
}

int receiver_hears_end(unsigned n)
{
	size_t len = 0;
	int r;

	while ((r = read_line(receivers[n], &len)) > 0)
		;
	return r;
}

void receiver_says(unsigned n, const char *text)
{
	write_all(receivers[n], text, strlen(text));
}

void receiver_closes(unsigned n)
{
	close_fd(&receivers[n]);
}

/* Both */

void sender_greets(unsigned n, const char *offers)
{
	sender_says(n, "EHLO sender.example\r\n");
	if (offers)
		receiver_greets(0, offers);
	sender_hears(n, "250-mx.example\r\n");
}

static void sender_asks(unsigned n, unsigned receiver, const char *command, const char *reply_to_it)
{
	sender_says(n, command);
	receiver_hears(receiver, command);
	receiver_says(receiver, reply_to_it);
	sender_hears(n, reply_to_it);
}

void sender_begins_message(unsigned n, unsigned receiver)
{
	sender_asks(n, receiver, "MAIL FROM:<s@a.example>\r\n", "250 2.1.0 Sender ok\r\n");
	sender_asks(n, receiver, "RCPT TO:<r@b.example>\r\n", "250 2.1.5 Recipient ok\r\n");
	sender_asks(n, receiver, "DATA\r\n", "354 Go ahead\r\n");
}
