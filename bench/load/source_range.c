/* source_range.c: an address plus a number, in the last 32 bits of the address. */
#include "bench/load/source_range.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>

#include "bench/command/option_table.h"
#include "net/socket/address.h"
#include "proto/error.h"

/* Where the last 32 bits are. */
static uint8_t *last_bits(struct sockaddr_storage *a)
{
	if (a->ss_family == AF_INET)
		return (uint8_t *)&((struct sockaddr_in *)a)->sin_addr;
	return ((struct sockaddr_in6 *)a)->sin6_addr.s6_addr + 12;
}

static uint32_t last_number(const struct sockaddr_storage *a)
{
	struct sockaddr_storage copy = *a;
	uint32_t n;

	memcpy(&n, last_bits(&copy), sizeof n);
	return ntohl(n);
}

static void set_last_number(struct sockaddr_storage *a, uint32_t number)
{
	uint32_t n = htonl(number);

	memcpy(last_bits(a), &n, sizeof n);
}

/* The number of addresses from @first to @last; 0: they are not a range. */
static uint32_t addresses_between(const struct sockaddr_storage *first, const struct sockaddr_storage *last)
{
	struct sockaddr_storage moved = *first;
	uint32_t from = last_number(first), to = last_number(last);

	set_last_number(&moved, to);
	if (first->ss_family != last->ss_family || memcmp(&moved, last, sizeof moved) != 0)
		return 0;
	return to >= from && to - from < SOURCES_MAX ? to - from + 1 : 0;
}

int source_ranges_add(struct source_ranges *all, const char *text)
{
	char first_text[ADDRESS_TEXT_MAX];
	struct sockaddr_storage first, last;
	size_t first_len = strcspn(text, "-");

	if (all->count == SOURCE_RANGES_MAX)
		return CSSL_E_FULL;
	if (first_len >= sizeof first_text)
		return CSSL_E_CONFIG;
	snprintf(first_text, sizeof first_text, "%.*s", (int)first_len, text);
	if (address_parse_host(first_text, &first) ||
		address_parse_host(text[first_len] ? text + first_len + 1 : first_text, &last))
		return CSSL_E_CONFIG;
	uint32_t addresses = addresses_between(&first, &last);
	if (addresses == 0 || addresses > SOURCES_MAX - source_ranges_count(all))
		return CSSL_E_CONFIG;
	all->ranges[all->count].first = first;
	all->ranges[all->count++].addresses = addresses;
	return 0;
}

int option_add_sources(void *options, const struct option_row *row, const char *value)
{
	return source_ranges_add(option_member(options, row), value);
}

uint32_t source_ranges_count(const struct source_ranges *all)
{
	uint32_t sum = 0;

	for (unsigned i = 0; i < all->count; i++)
		sum += all->ranges[i].addresses;
	return sum;
}

bool source_ranges_get(const struct source_ranges *all, uint64_t number, struct sockaddr_storage *out)
{
	if (all->count == 0)
		return false;
	uint32_t left = (uint32_t)(number % source_ranges_count(all));
	unsigned i = 0;

	while (left >= all->ranges[i].addresses)
		left -= all->ranges[i++].addresses;
	*out = all->ranges[i].first;
	set_last_number(out, last_number(out) + left);
	return true;
}
