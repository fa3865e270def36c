/* rings.c: the memory and its positions. A side that wants to sleep first writes that down, and then reads the
 * position once more. A side that moves a position then reads whether the other side sleeps. Both have a full
 * barrier between the two steps, so at least one of them sees the other's write (Dekker).
 */
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <uv.h>

#include "net/stream/rings.h"

#include "net/points/audit.h"

#define SEALS      (F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL)
#define CACHE_LINE 64u

/* The ends of one ring, in the shared memory. Each side writes its own cache line. The only exception: it clears the
 * other side's request to be woken. */
struct ends {
	_Alignas(CACHE_LINE) _Atomic uint32_t tail;
	_Atomic uint32_t writer_waits;
	_Alignas(CACHE_LINE) _Atomic uint32_t head;
	_Atomic uint32_t reader_sleeps;
};

struct way {
	struct ends *ends;
	uint8_t *data;
	uint32_t at;     /* our own position: of the writer the tail, of the reader the head */
	uint32_t staged; /* writer: bytes before it that the reader does not see yet */
};

struct rings {
	struct way out, in;
	uint8_t *base;
	int fd;
	enum { ROOM_ENOUGH, ROOM_AWAITED } room;
};

_Static_assert((RINGS_LEN & (RINGS_LEN - 1)) == 0, "positions wrap around");
_Static_assert(sizeof(atomic_uint) == 4 && ATOMIC_INT_LOCK_FREE == 2, "shared between processes");

static size_t page_len(void)
{
	return (size_t)sysconf(_SC_PAGESIZE);
}

static size_t memory_len(void)
{
	return page_len() + 2 * (size_t)RINGS_LEN;
}

static size_t mapped_len(void)
{
	return page_len() + 4 * (size_t)RINGS_LEN;
}

int rings_make(void)
{
	int fd = memfd_create("cssl-link", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0)
		return -errno;
	/* take no page before it is used: a link with little traffic needs few */
	if (ftruncate(fd, (off_t)memory_len()) == 0 && fcntl(fd, F_ADD_SEALS, SEALS) == 0)
		return fd;
	int r = -errno;
	close(fd);
	return r;
}

static bool is_sealed(int fd)
{
	struct stat s;
	int seals = fcntl(fd, F_GET_SEALS);

	return seals >= 0 && (seals & F_SEAL_SHRINK) && fstat(fd, &s) == 0 && s.st_size == (off_t)memory_len();
}

static int map(uint8_t *at, size_t len, int fd, size_t offset)
{
	void *p = mmap(at, len, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, (off_t)offset);

	return p == MAP_FAILED ? -errno : 0;
}

/* Map the page, and each ring twice. */
static int map_all(uint8_t *base, int fd)
{
	size_t page = page_len();
	int r = map(base, page, fd, 0);

	for (unsigned i = 0; i < 4 && r == 0; i++)
		r = map(base + page + i * (size_t)RINGS_LEN, RINGS_LEN, fd, page + i / 2 * (size_t)RINGS_LEN);
	if (r == 0 && madvise(base, mapped_len(), MADV_DONTDUMP) < 0)
		r = -errno;
	return r;
}

static struct way way_of(uint8_t *base, unsigned ring)
{
	return (struct way){
		.ends = (struct ends *)base + ring,
		.data = base + page_len() + ring * 2 * (size_t)RINGS_LEN,
	};
}

/* Map all of it at a free address. NULL: out of memory or of mappings. */
static uint8_t *map_anywhere(int fd)
{
	uint8_t *base = mmap(NULL, mapped_len(), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (base == MAP_FAILED)
		return NULL;
	if (map_all(base, fd) == 0)
		return base;
	munmap(base, mapped_len());
	return NULL;
}

int rings_open(int fd, enum rings_side side, struct rings **out)
{
	bool is_ours = is_sealed(fd);
	struct rings *r = is_ours ? calloc(1, sizeof *r) : NULL;

	if (!r || !(r->base = map_anywhere(fd))) {
		free(r);
		close(fd);
		return is_ours ? UV_ENOMEM : UV_EPROTO;
	}
	audit_shared(r->base, mapped_len());
	r->fd = fd;
	r->out = way_of(r->base, side == RINGS_MAKER ? 0 : 1);
	r->in = way_of(r->base, side == RINGS_MAKER ? 1 : 0);
	r->out.at = atomic_load(&r->out.ends->tail);
	r->in.at = atomic_load(&r->in.ends->head);
	*out = r;
	return 0;
}

void rings_close(struct rings *r)
{
	if (!r)
		return;
	audit_shared(r->base, 0);
	munmap(r->base, mapped_len());
	close(r->fd);
	free(r);
}

int rings_fd(const struct rings *r)
{
	return r->fd;
}

/* --- writing --- */

/* A reader with an impossible position has no room any more. */
static uint32_t room_len(const struct rings *r)
{
	uint32_t used = r->out.at - atomic_load_explicit(&r->out.ends->head, memory_order_acquire);

	return used <= RINGS_LEN ? RINGS_LEN - used : 0;
}

uint8_t *rings_room(struct rings *r, size_t *len)
{
	*len = room_len(r);
	return r->out.data + r->out.at % RINGS_LEN;
}

void rings_stage(struct rings *r, size_t len)
{
	r->out.at += (uint32_t)len;
	r->out.staged += (uint32_t)len;
}

size_t rings_staged(const struct rings *r)
{
	return r->out.staged;
}

bool rings_publish(struct rings *r, size_t len)
{
	struct ends *e = r->out.ends;

	r->out.at += (uint32_t)len;
	r->out.staged = 0;
	atomic_store_explicit(&e->tail, r->out.at, memory_order_release);
	atomic_thread_fence(memory_order_seq_cst);
	return atomic_load_explicit(&e->reader_sleeps, memory_order_relaxed) && atomic_exchange(&e->reader_sleeps, 0);
}

bool rings_wait_for_room(struct rings *r)
{
	r->room = ROOM_AWAITED;
	atomic_store_explicit(&r->out.ends->writer_waits, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	return !rings_waits_for_room(r);
}

bool rings_waits_for_room(struct rings *r)
{
	if (r->room == ROOM_AWAITED && room_len(r) >= RINGS_LEN / 2) {
		r->room = ROOM_ENOUGH;
		atomic_store_explicit(&r->out.ends->writer_waits, 0, memory_order_relaxed);
	}
	return r->room == ROOM_AWAITED;
}

/* --- reading --- */

const uint8_t *rings_input(struct rings *r, size_t *len)
{
	uint32_t there = atomic_load_explicit(&r->in.ends->tail, memory_order_acquire) - r->in.at;

	*len = there;
	return there <= RINGS_LEN ? r->in.data + r->in.at % RINGS_LEN : NULL;
}

bool rings_has_input(struct rings *r)
{
	size_t len;

	rings_input(r, &len);
	return len > 0;
}

bool rings_used(struct rings *r, size_t len)
{
	struct ends *e = r->in.ends;

	r->in.at += (uint32_t)len;
	atomic_store_explicit(&e->head, r->in.at, memory_order_release);
	atomic_thread_fence(memory_order_seq_cst);
	uint32_t left = atomic_load_explicit(&e->tail, memory_order_relaxed) - r->in.at;
	return left <= RINGS_LEN / 2 && atomic_load_explicit(&e->writer_waits, memory_order_relaxed) &&
	       atomic_exchange(&e->writer_waits, 0);
}

bool rings_sleep(struct rings *r)
{
	atomic_store_explicit(&r->in.ends->reader_sleeps, 1, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
	if (!rings_has_input(r))
		return false;
	rings_stay_awake(r);
	return true;
}

void rings_stay_awake(struct rings *r)
{
	atomic_store_explicit(&r->in.ends->reader_sleeps, 0, memory_order_relaxed);
}
