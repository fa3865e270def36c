/* notes.c: one anonymous shared mapping: the structure, the beats of the threads, the sockets. */
#include "ragent/keeper/notes.h"

#include <stddef.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>

#include "net/address.h"
#include "net/endpoints.h"
#include "net/log.h"
#include "proto/error.h"

/* The sockets begin at a multiple of this. */
#define ALIGNMENT 64u

static size_t align(size_t end)
{
	return (end + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT;
}

static size_t working_offset(unsigned threads)
{
	return align(sizeof(struct notes) + threads * sizeof(uint32_t));
}

static size_t sockets_offset(unsigned threads)
{
	return align(working_offset(threads) + threads * sizeof(struct client_address));
}

static size_t notes_len(unsigned threads, unsigned sockets)
{
	return sockets_offset(threads) + sockets * sizeof(struct noted_socket);
}

struct notes *notes_create(unsigned threads, unsigned sockets)
{
	size_t len = notes_len(threads, sockets);
	struct notes *n = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);

	if (n == MAP_FAILED)
		return NULL;
	n->thread_count = threads;
	n->socket_cap = sockets;
	n->working = (struct client_address *)((uint8_t *)n + working_offset(threads));
	n->sockets = (struct noted_socket *)((uint8_t *)n + sockets_offset(threads));
	return n;
}

void notes_destroy(struct notes *n)
{
	if (n)
		munmap(n, notes_len(n->thread_count, n->socket_cap));
}

void notes_set_stage(struct notes *n, enum notes_stage stage)
{
	if (n)
		atomic_store(&n->stage, stage);
}

void notes_go_on_serving(struct notes *n)
{
	uint32_t giving = NOTES_GIVING;

	if (n)
		atomic_compare_exchange_strong(&n->stage, &giving, NOTES_SERVING);
}

void notes_beat(struct notes *n, unsigned thread)
{
	if (n && thread < n->thread_count)
		atomic_fetch_add_explicit(&n->beats[thread], 1, memory_order_relaxed);
}

uint64_t notes_deaths(const struct notes *n)
{
	uint64_t sum = 0;

	for (unsigned i = 0; n && i < DEATH_CAUSE_COUNT; i++)
		sum += atomic_load(&n->deaths[i]);
	return sum;
}

int notes_add_socket(struct notes *n, const char *key, unsigned worker, int fd)
{
	if (!n)
		return 0;
	if (strlen(key) >= NOTES_KEY_MAX)
		return CSSL_E_TOO_LONG;
	if (n->socket_count == n->socket_cap)
		return CSSL_E_NO_MEMORY;
	struct noted_socket *s = &n->sockets[n->socket_count++];
	strcpy(s->key, key);
	s->worker = worker;
	s->fd = fd;
	return 0;
}

static void suspect(struct notes *n, const struct client_address *address, uint64_t now_ms)
{
	const uint32_t crashes = suspects_add(&n->suspects, address, now_ms);
	struct sockaddr_storage source;
	char text[ADDRESS_TEXT_MAX];

	if (crashes == 0)
		return;
	endpoint_sockaddr(address, 0, &source);
	log_event(LOG_WARNING, NULL, "source suspected", "source=%s crashes=%u refused_s=%u",
		address_format((const struct sockaddr *)&source, text), crashes,
		crashes >= SUSPECT_CRASHES ? SUSPECT_REFUSED_MS / 1000 : 0);
}

void notes_suspect_sources(struct notes *n)
{
	const uint64_t died_ms = atomic_load(&n->died_ns) / 1000000;

	for (uint32_t i = 0; i < n->thread_count; i++) {
		struct client_address address = n->working[i];
		n->working[i].len = 0;
		if (atomic_load(&n->last_cause) == DEATH_CRASHED && address.len)
			suspect(n, &address, died_ms);
	}
}

int notes_socket_listens(const struct noted_socket *s)
{
	int listens = 0;
	socklen_t len = sizeof listens;

	return getsockopt(s->fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) == 0 && listens;
}

const char *death_cause_name(enum death_cause cause)
{
	static const char *const names[DEATH_CAUSE_COUNT] = {
		[DEATH_KILLED] = "killed", [DEATH_CRASHED] = "crashed", [DEATH_HUNG] = "hung"
	};

	return names[cause];
}
