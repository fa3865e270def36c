/* shared_bulk.c: many bytes of a pattern between the two streams of shared_pair.h. */
#include <sys/mman.h>

#include "shared_bulk.h"

uint8_t bulk[BULK];
struct owner near, far;

void open_both(void)
{
	shared_pair_open(&near, &far);
}

void finish_both(void)
{
	shared_pair_finish(&near, &far);
}

size_t some_len(unsigned *state, size_t most)
{
	*state = *state * 1103515245u + 12345u;
	size_t shift = *state >> 28;
	size_t len = 1 + (*state >> 8) % (200000u >> shift);

	return len < most ? len : most;
}

void write_pattern(struct owner *o, size_t len, size_t from)
{
	ck_assert_uint_le(from + len, BULK);
	ck_assert_int_eq(stream_write(&o->s, bulk + from, len), 0);
}

void assert_got(const struct owner *o, size_t len)
{
	ck_assert_uint_eq(o->got_len, len);
	if (len)
		ck_assert_mem_eq(o->got, bulk, len);
}

uint32_t *positions_of(const struct owner *o)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, stream_shared_fd(&o->s), 0);

	ck_assert_ptr_ne(p, MAP_FAILED);
	return p;
}

void stop_reading(struct owner *o, enum owner_event event)
{
	if (event == OWNER_DATA)
		stream_read_stop(&o->s);
}

int shared_suite_run(const char *name, const TTest *const *facts, size_t count)
{
	pattern(bulk, sizeof bulk, 0);
	return worker_suite_run(name, facts, count);
}
