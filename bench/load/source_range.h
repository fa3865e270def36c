/* source_range.h: the source addresses of clients: single ones and ranges. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/socket.h>

#define SOURCE_RANGES_MAX 32u
#define SOURCES_MAX       (1u << 16)

struct source_ranges {
	unsigned count;
	struct {
		struct sockaddr_storage first;
		uint32_t addresses;
	} ranges[SOURCE_RANGES_MAX];
};

/* "127.0.1.1-127.0.1.20" or "127.0.1.1"; IPv6 likewise, a range within its last 32 bits. 0, CSSL_E_CONFIG or
 * CSSL_E_FULL. */
int source_ranges_add(struct source_ranges *all, const char *text);
/* The same as a row of a command line. */
struct option_row;
int option_add_sources(void *options, const struct option_row *row, const char *value);

/* All addresses of all ranges. */
uint32_t source_ranges_count(const struct source_ranges *all);

/* Address @number modulo their count, with port 0. Returns 1; 0 if there are none, and @out is unchanged. */
bool source_ranges_get(const struct source_ranges *all, uint64_t number, struct sockaddr_storage *out);
