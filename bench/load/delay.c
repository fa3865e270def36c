/* delay.c: `cssl-bench delay`: a wire with a length. Packets between two TUN devices, one here and one in another
 * network namespace, each held for the same time. For kernels without netem.
 *
 * Each direction is a ring of packets in the order of their arrival, which is that of their departure. A full ring
 * drops, as a router does.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "bench/command/command.h"
#include "bench/command/option_table.h"

#define PACKET_MAX    1600u
#define RING_LEN      16384u
#define NS_PER_S      1000000000u
#define NS_PER_MS     1000000u
#define DELAY_MAX_MS  10000
#define DELAY_UNKNOWN UINT64_MAX
#define NETNS         "/run/netns/%s"

struct packet {
	uint64_t due_ns;
	uint32_t len;
	uint8_t bytes[PACKET_MAX];
};

struct direction {
	int from, to;
	uint32_t first, count;
	uint64_t dropped;
	struct packet *ring;
};

struct delay_options {
	const char *here, *there, *netns; /* names of devices that exist, and of the namespace of the second */
	uint64_t delay_ns;
};

static volatile sig_atomic_t stopped;

static void on_delay_signal(int signum)
{
	stopped = signum;
}

static uint64_t delay_now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * NS_PER_S + (uint64_t)t.tv_nsec;
}

static int open_tun(const char *name)
{
	struct ifreq request = { .ifr_flags = IFF_TUN | IFF_NO_PI };
	int fd = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);

	snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
	if (fd >= 0 && ioctl(fd, TUNSETIFF, &request) == 0)
		return fd;
	fprintf(stderr, "delay: %s: %s\n", name, strerror(errno));
	if (fd >= 0)
		close(fd);
	return -1;
}

static int enter_netns(const char *name)
{
	char path[256];

	snprintf(path, sizeof path, NETNS, name);
	int fd = open(path, O_RDONLY | O_CLOEXEC), r = fd >= 0 ? setns(fd, CLONE_NEWNET) : -1;
	if (r < 0)
		fprintf(stderr, "delay: namespace %s: %s\n", name, strerror(errno));
	if (fd >= 0)
		close(fd);
	return r;
}

/* Read what there is. A packet that finds no room is read all the same, and lost. */
static void take_in(struct direction *d, uint64_t due_ns)
{
	struct packet lost;

	for (;;) {
		struct packet *p = d->count < RING_LEN ? &d->ring[(d->first + d->count) % RING_LEN] : &lost;
		ssize_t len = read(d->from, p->bytes, sizeof p->bytes);
		if (len <= 0)
			return;
		p->len = (uint32_t)len;
		p->due_ns = due_ns;
		if (p == &lost)
			d->dropped++;
		else
			d->count++;
	}
}

/* A write to a device that is down fails. That is no error, because no agent waits for the datagram. */
static void let_out(struct direction *d, uint64_t now)
{
	while (d->count > 0 && d->ring[d->first].due_ns <= now) {
		const struct packet *p = &d->ring[d->first];
		ssize_t taken = write(d->to, p->bytes, p->len);
		(void)taken;
		d->first = (d->first + 1) % RING_LEN;
		d->count--;
	}
}

static uint64_t next_due(const struct direction *d, uint64_t limit)
{
	return d->count > 0 && d->ring[d->first].due_ns < limit ? d->ring[d->first].due_ns : limit;
}

static void delay_relay(struct direction ways[static 2], uint64_t delay_ns)
{
	struct pollfd fds[2] = { { .fd = ways[0].from, .events = POLLIN }, { .fd = ways[1].from, .events = POLLIN } };

	while (!stopped) {
		uint64_t now = delay_now_ns(), next = next_due(&ways[0], next_due(&ways[1], now + NS_PER_S));
		uint64_t wait = next > now ? next - now : 0;
		struct timespec t = { (time_t)(wait / NS_PER_S), (long)(wait % NS_PER_S) };
		ppoll(fds, 2, &t, NULL);
		now = delay_now_ns();
		for (int i = 0; i < 2; i++) {
			if (fds[i].revents)
				take_in(&ways[i], now + delay_ns);
			let_out(&ways[i], now);
		}
	}
}

#define TEXT(name, value, member, help) OPTION_TEXT(0, name, value, struct delay_options, member, help)

static const struct option_row rows[] = {
	TEXT("here", "DEVICE", here, "a TUN device of this network namespace"),
	TEXT("there", "DEVICE", there, "a TUN device of the network namespace of --netns"),
	TEXT("netns", "NAME", netns, "the name of that namespace, in /run/netns"),
	OPTION_NUMBER(0, "ms", "N", struct delay_options, delay_ns, 0, DELAY_MAX_MS, NS_PER_MS, "milliseconds"),
};

static const struct option_command command = { "delay",
	"cssl-bench delay --here DEVICE --there DEVICE --netns NAME --ms N\n\nRelays packets between two TUN devices, "
	"and holds each packet for N milliseconds. Prints 'relaying' when it has begun. SIGTERM ends it.\n\n",
	NULL, rows, sizeof rows / sizeof rows[0], OPTIONS_ONLY };

static enum option_parse delay_parse(int argc, char **argv, struct delay_options *o)
{
	const enum option_parse parsed = option_table_parse(&command, argc, argv, o);

	if (parsed != OPTIONS_PARSED || (o->here && o->there && o->netns && o->delay_ns != DELAY_UNKNOWN))
		return parsed;
	fputs("delay: --here, --there, --netns and --ms are needed\n", stderr);
	return OPTIONS_BAD;
}

int delay_main(int argc, char **argv)
{
	static const struct sigaction action = { .sa_handler = on_delay_signal };
	struct delay_options o = { .delay_ns = DELAY_UNKNOWN };
	struct direction ways[2] = { { .from = -1 }, { .from = -1 } };
	const enum option_parse parsed = delay_parse(argc, argv, &o);
	int r = EXIT_FAILURE;

	if (parsed != OPTIONS_PARSED)
		return parsed;
	ways[0].from = ways[1].to = open_tun(o.here);
	if (ways[0].from < 0 || enter_netns(o.netns))
		goto out;
	ways[1].from = ways[0].to = open_tun(o.there);
	for (int i = 0; i < 2; i++)
		ways[i].ring = calloc(RING_LEN, sizeof(struct packet));
	if (ways[1].from < 0 || !ways[0].ring || !ways[1].ring)
		goto out;
	sigaction(SIGTERM, &action, NULL);
	sigaction(SIGINT, &action, NULL);
	printf("relaying\n");
	fflush(stdout);
	delay_relay(ways, o.delay_ns);
	printf("dropped %llu\n", (unsigned long long)(ways[0].dropped + ways[1].dropped));
	r = EXIT_SUCCESS;
out:
	for (int i = 0; i < 2; i++) {
		free(ways[i].ring);
		if (ways[i].from >= 0)
			close(ways[i].from);
	}
	return r;
}
