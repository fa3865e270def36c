/* fuzz_smtp_session.c: sessions of smtpproxy between senders and a receiver, all over sockets of this process. The
 * input is lines. "1" and "2" begin a line of two senders whose connections have one id, "3" of one that has none; "<"
 * one of the receiver on its oldest connection, ">" on its newest. "!" and a digit: that sender is lost; "." and a
 * digit: it sends FIN; "-" and "+": the receiver ends its oldest or newest connection. What a sender hears is replies;
 * what smtpproxy counts as accepted the receiver has accepted; and when all ends are closed, nothing is left.
 */
#include <arpa/inet.h>
#include <fcntl.h>
#include <sodium.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "net/limits/admission.h"
#include "net/report/log.h"
#include "proto/proxy_header.h"
#include "smtpproxy/events/event_log.h"
#include "smtpproxy/ledger/tx_before.h"
#include "smtpproxy/policy/destination_rules.h"
#include "smtpproxy/sender/session.h"
#include "tests/fuzz/must.h"

#define SENDERS       3u
#define RECEIVERS_MAX 16u
#define TURNS         8u   /* of the loop, after which all that follows from one line has happened */
#define TURNS_MAX     400u /* until everything has closed */

static const char settings[] = "name: proxy.example\n"
			       "listeners: [{address: '127.0.0.1:1', original_destination: proxy, "
			       "trusted: [127.0.0.0/8], next_hop: '127.0.0.1:25'}]\n"
			       "outward: {any_port: on, local: [127.0.0.0/8], tls: none, messages: 3}\n"
			       "limits: {connections_per_destination: 2, transactions: 4, errors: 5, hops: 3}\n";

struct sender {
	int fd; /* -1: none */
	uint8_t line[4096];
	size_t line_len;
	int is_behind; /* a line of a reply that has more */
};

static struct worker *loop;
static struct conf_smtpproxy *conf;
static struct smtpproxy_counters counters;
static struct outward_home receivers_home;
static struct replies replies;
static struct sender_home home;
static int listening = -1;

static struct sender senders[SENDERS];
static int receivers[RECEIVERS_MAX];
static unsigned receiver_count;
static uint64_t said_positive; /* lines of the receiver that begin with 2 */

static void on_gone(struct sender_home *gone)
{
}

static void on_outward_stopped(void *ctx)
{
	*(int *)ctx = 1;
}

static void set_up(void)
{
	char error[1024];
	struct sockaddr_in *hop;
	socklen_t len = sizeof *hop;

	MUST(sodium_init() >= 0);
	log_open("fuzz", NULL, LOG_TEXT, LOG_ERROR, "/dev/null");
	MUST(conf_smtpproxy_parse(settings, strlen(settings), "fuzz", &conf, error, sizeof error) == 0);
	hop = (struct sockaddr_in *)&conf->listeners[0].next_hop;
	hop->sin_port = 0;
	listening = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	MUST(bind(listening, (struct sockaddr *)hop, len) == 0 && listen(listening, 64) == 0);
	MUST(getsockname(listening, (struct sockaddr *)hop, &len) == 0);
	loop = worker_create(0, "fuzz");
	MUST(loop);
	receivers_home =
		(struct outward_home){ .worker = loop, .conf = conf, .counters = &counters, .replies = &replies };
	home = (struct sender_home){ .worker = loop, .conf = conf, .counters = &counters, .on_gone = on_gone };
	home.rules = destination_rules_create(conf);
	home.admission = admission_create(conf->limits.sessions, conf->limits.sessions_per_source);
	home.events = event_log_create(NULL, &counters.events_dropped);
	LIST_INIT(&home.sessions);
	LIST_INIT(&home.askers);
	for (unsigned i = 0; i < SENDERS; i++)
		senders[i].fd = -1;
}

/* Senders */

static void must_be_a_reply_line(struct sender *s)
{
	const uint8_t *line = s->line;
	MUST(s->line_len >= 5 && line[0] >= '2' && line[0] <= '5' && line[s->line_len - 2] == '\r');
	MUST(line[3] == ' ' || line[3] == '-' || s->line_len == 5);
	s->is_behind = line[3] == '-';
	s->line_len = 0;
}

static void hear(struct sender *s)
{
	uint8_t in[4096];
	ssize_t len;
	while (s->fd >= 0 && (len = read(s->fd, in, sizeof in)) > 0) {
		for (ssize_t i = 0; i < len; i++) {
			MUST(s->line_len < sizeof s->line);
			s->line[s->line_len++] = in[i];
			if (in[i] == '\n')
				must_be_a_reply_line(s);
		}
	}
}

static void give(int fd, const void *data, size_t len)
{
	if (fd >= 0 && send(fd, data, len, MSG_NOSIGNAL) < 0)
		return; /* it has closed, or reads nothing */
}

static void come(unsigned number)
{
	static const uint8_t id[] = { 0x0a };
	struct proxy_header h = { .version = 2, .command = PROXY_PROXIED, .family = PROXY_TCP4, .source_port = 1000 };
	struct sockaddr_storage peer = { 0 };
	uint8_t header[PROXY_V2_MAX];
	int pair[2];
	h.source[0] = 192;
	h.source[3] = (uint8_t)number;
	h.unique_id = id;
	h.unique_id_len = number < 2 ? sizeof id : 0;
	((struct sockaddr_in *)&peer)->sin_family = AF_INET;
	((struct sockaddr_in *)&peer)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	MUST(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair) == 0);
	senders[number] = (struct sender){ .fd = pair[0] };
	const ptrdiff_t len = proxy_header_write(&h, header, sizeof header);
	MUST(len > 0);
	give(pair[0], header, (size_t)len);
	session_open(&home, &conf->listeners[0], pair[1], &peer);
}

static void lose(unsigned number)
{
	if (senders[number].fd >= 0)
		close(senders[number].fd);
	senders[number].fd = -1;
}

/* The receiver */

static void accept_all(void)
{
	int fd;
	while (receiver_count < RECEIVERS_MAX && (fd = accept4(listening, NULL, NULL, SOCK_NONBLOCK)) >= 0)
		receivers[receiver_count++] = fd;
}

static void read_receivers(void)
{
	uint8_t waste[65536];
	for (unsigned i = 0; i < receiver_count; i++) {
		while (read(receivers[i], waste, sizeof waste) > 0)
			;
	}
}

static void end_receiver(unsigned i)
{
	const struct linger reset = { .l_onoff = 1 };
	if (i >= receiver_count)
		return;
	setsockopt(receivers[i], SOL_SOCKET, SO_LINGER, &reset, sizeof reset);
	close(receivers[i]);
	receivers[i] = receivers[--receiver_count];
}

static void turn(void)
{
	uv_run(worker_loop(loop), UV_RUN_NOWAIT);
	accept_all();
	read_receivers();
	for (unsigned i = 0; i < SENDERS; i++)
		hear(&senders[i]);
}

/* The input */

static void receiver_says(unsigned i, const uint8_t *text, size_t len)
{
	if (i >= receiver_count)
		return;
	said_positive += len > 0 && text[0] == '2';
	give(receivers[i], text, len);
	give(receivers[i], "\r\n", 2);
}

static unsigned number_of(uint8_t digit)
{
	return (unsigned)(digit - '1') % SENDERS;
}

static void sender_says(unsigned number, const uint8_t *text, size_t len)
{
	if (senders[number].fd < 0)
		come(number);
	give(senders[number].fd, text, len);
	give(senders[number].fd, "\r\n", 2);
}

static void run_line(const uint8_t *line, size_t len)
{
	const unsigned number = len > 1 ? number_of(line[1]) : 0;
	const unsigned newest = receiver_count > 0 ? receiver_count - 1 : 0;
	switch (line[0]) {
	case '<': receiver_says(0, line + 1, len - 1); break;
	case '>': receiver_says(newest, line + 1, len - 1); break;
	case '-': end_receiver(0); break;
	case '+': end_receiver(newest); break;
	case '!': lose(number); break;
	case '.':
		if (senders[number].fd >= 0)
			shutdown(senders[number].fd, SHUT_WR);
		break;
	default: sender_says(number_of(line[0]), line + 1, len - 1); break;
	}
	for (unsigned i = 0; i < TURNS; i++)
		turn();
	MUST(counters.accepted <= said_positive);
}

static void begin(void)
{
	counters = (struct smtpproxy_counters){ 0 };
	said_positive = 0;
	home.outward = outward_create(&receivers_home);
	home.ledger = tx_ledger_create(conf->limits.transactions);
	home.before = tx_before_create(conf->limits.transactions);
	MUST(home.outward && home.ledger);
}

/* Those that wait for a receiver do so for minutes, also behind a FIN. */
static void cut_all(void)
{
	struct session *s, *next;
	for (s = LIST_FIRST(&home.sessions); s; s = next) {
		next = LIST_NEXT(s, next);
		session_cut(s);
	}
}

/* Everybody goes, and nothing may be left. */
static void end(void)
{
	int stopped = 0;
	unsigned turns = 0;
	for (unsigned i = 0; i < SENDERS; i++)
		lose(i);
	turn();
	cut_all();
	for (; home.count > 0 && turns < TURNS_MAX; turns++) {
		while (receiver_count > 0)
			end_receiver(0);
		turn();
	}
	MUST(home.count == 0);
	outward_stop(home.outward, on_outward_stopped, &stopped);
	for (; !stopped && turns < TURNS_MAX; turns++)
		turn();
	MUST(stopped);
	while (receiver_count > 0)
		end_receiver(0);
	outward_destroy(home.outward);
	tx_ledger_destroy(home.ledger);
	tx_before_destroy(home.before);
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	if (!loop)
		set_up();
	begin();
	for (unsigned lines = 0; len > 0 && lines < 100; lines++) {
		const uint8_t *lf = memchr(in, '\n', len);
		const size_t n = lf ? (size_t)(lf - in) : len;
		if (n > 0)
			run_line(in, n);
		in += lf ? n + 1 : n;
		len -= lf ? n + 1 : n;
	}
	end();
	return 0;
}
