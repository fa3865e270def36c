/* audit.c: one file for each thread, mapped shared. A stored row is in the page cache, so a killed process loses
 * none. A row's kind is stored last, so a row is complete or does not count.
 */
#include "net/points/audit.h"

#ifdef CSSL_TEST_POINTS
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sodium.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "net/points/fault.h"

#define FILE_STEP          ((size_t)1 << 20)
#define RECORD_HEADER_LEN  5u
#define RECORD_APPLICATION 0x17u
#define RECORD_ALERT       0x15u
#define SHARED_MAX         256u /* more are not looked at */

static_assert(sizeof(struct audit_row) == 80, "the layout that nonce_audit.py reads");

struct audit_file {
	int fd;
	uint8_t *map;
	size_t map_len, used;
};

static _Thread_local struct audit_file file = { .fd = -1 };

static struct {
	pthread_mutex_t lock;
	struct {
		const uint8_t *memory; /* NULL: free */
		size_t len;
	} parts[SHARED_MAX];
} shared = { .lock = PTHREAD_MUTEX_INITIALIZER };

static void audit_broken(const char *what)
{
	fprintf(stderr, "nonce audit: %s: %s\n", what, strerror(errno));
	abort(); /* an audit with missing rows proves nothing */
}

static void file_open(const char *dir)
{
	char path[4096];

	/* the system may reuse a process id: never write into the file of another process */
	for (unsigned again = 0; file.fd < 0; again++) {
		snprintf(path, sizeof path, "%s/%s-%d-%d.%u", dir, fault_node(), (int)getpid(), (int)gettid(), again);
		file.fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
		if (file.fd < 0 && errno != EEXIST)
			audit_broken(path);
	}
}

static void file_grow(void)
{
	size_t len = file.map_len + FILE_STEP;

	if (ftruncate(file.fd, (off_t)len) < 0)
		audit_broken("ftruncate");
	void *map = file.map ? mremap(file.map, file.map_len, len, MREMAP_MAYMOVE)
			     : mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, file.fd, 0);
	if (map == MAP_FAILED)
		audit_broken("mmap");
	file.map = map;
	file.map_len = len;
}

bool audit_active(void)
{
	if (file.fd >= 0)
		return true;
	const char *dir = getenv("CSSL_AUDIT_DIR");
	if (!dir || !dir[0])
		return false;
	file_open(dir);
	return true;
}

static void audit_append(struct audit_row *row)
{
	uint8_t kind = row->kind;

	/* a row of zeros always follows */
	if (file.used + 2 * sizeof *row > file.map_len)
		file_grow();
	struct audit_row *place = (struct audit_row *)(void *)(file.map + file.used);
	row->kind = 0;
	memcpy(place, row, sizeof *row);
	atomic_thread_fence(memory_order_release);
	*(volatile uint8_t *)&place->kind = kind;
	file.used += sizeof *row;
}

static uint64_t now_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static struct audit_row row_of(
	enum audit_kind kind, const uint8_t connection[16], uint32_t epoch, const uint8_t *record, size_t len)
{
	struct audit_row row = {
		.kind = (uint8_t)kind, .epoch = epoch, .record_len = (uint32_t)len, .at_ns = now_ns()
	};

	memcpy(row.connection, connection, sizeof row.connection);
	if (len)
		crypto_generichash(row.record_hash, sizeof row.record_hash, record, len, NULL, 0);
	return row;
}

static void sealed(enum audit_kind kind, const struct audit_sealing *s, const uint8_t *record, size_t len)
{
	if (!audit_active())
		return;
	struct audit_row row = row_of(kind, s->connection, s->epoch, record, len);
	row.type = s->type;
	row.suite = s->suite;
	if (s->key) {
		crypto_generichash(row.key_id, sizeof row.key_id, s->key, s->key_len, NULL, 0);
		memcpy(row.nonce, s->nonce, sizeof row.nonce);
	}
	audit_append(&row);
}

void audit_shared(const uint8_t *memory, size_t len)
{
	const uint8_t *wanted = len ? NULL : memory;
	unsigned i = 0;

	pthread_mutex_lock(&shared.lock);
	while (i < SHARED_MAX && shared.parts[i].memory != wanted)
		i++;
	if (i < SHARED_MAX) {
		shared.parts[i].memory = len ? memory : NULL;
		shared.parts[i].len = len;
	}
	pthread_mutex_unlock(&shared.lock);
}

static bool is_shared(const uint8_t *at)
{
	bool is = false;

	pthread_mutex_lock(&shared.lock);
	for (unsigned i = 0; i < SHARED_MAX && !is; i++)
		is = shared.parts[i].memory && (uintptr_t)at >= (uintptr_t)shared.parts[i].memory &&
		     (uintptr_t)at < (uintptr_t)shared.parts[i].memory + shared.parts[i].len;
	pthread_mutex_unlock(&shared.lock);
	return is;
}

void audit_sealed(const struct audit_sealing *s, const uint8_t *record, size_t len)
{
	sealed(AUDIT_SEALED, s, record, len);
	if (is_shared(record))
		audit_left(AUDIT_IN_RING, s->connection, s->epoch);
}

void audit_sealed_by_openssl(const struct audit_sealing *s, const uint8_t *record, size_t len)
{
	sealed(AUDIT_SEALED_BY_OPENSSL, s, record, len);
}

void audit_left(enum audit_kind how, const uint8_t connection[16], uint32_t epoch)
{
	if (!audit_active())
		return;
	struct audit_row row = row_of(how, connection, epoch, NULL, 0);
	audit_append(&row);
}

void audit_copied(const uint8_t connection[16], uint32_t epoch)
{
	audit_left(AUDIT_COPIED, connection, epoch);
}

void audit_accepted(const uint8_t connection[16], uint32_t epoch, const uint8_t *records, size_t len)
{
	if (!audit_active())
		return;
	while (len >= RECORD_HEADER_LEN) {
		size_t record_len = RECORD_HEADER_LEN + ((size_t)records[3] << 8 | records[4]);
		if (record_len > len) /* not TLS: the plaintext before STARTTLS */
			return;
		if (records[0] == RECORD_APPLICATION || records[0] == RECORD_ALERT) {
			struct audit_row row = row_of(AUDIT_ACCEPTED, connection, epoch, records, record_len);
			audit_append(&row);
		}
		records += record_len;
		len -= record_len;
	}
}
#endif
