/* exchange.c */
#include "tests/lib/tlsload/exchange.h"

#include <stdio.h>
#include <string.h>

#include "bench/server/pattern.h"
#include "tests/lib/tlsload/group.h"

static void expect_answer(struct exchange *x)
{
	const struct group *g = x->group;
	const unsigned long long body = g->body;

	x->expected = g->expected;
	answer_start(&x->answer);
	if (x->expected.body != EXPECT_TEXT)
		return;
	x->expected.text = x->text;
	if (strcmp(g->path, "/sha256") == 0)
		snprintf(x->text, sizeof(x->text), "{\"sha256\":\"%s\",\"length\":%llu}\n", g->sha256, body);
	else
		snprintf(x->text, sizeof(x->text), "{\"id\":\"%s\",\"executions\":1,\"length\":%llu}\n", x->id, body);
}

static void write_head(struct exchange *x)
{
	const struct group *g = x->group;
	int n = snprintf(x->head, sizeof(x->head), "%s %s HTTP/1.1\r\nHost: localhost\r\n", g->method, g->path);

	if (g->id[0])
		n += snprintf(x->head + n, sizeof(x->head) - (size_t)n, "X-Id: %s\r\n", x->id);
	if (strcmp(g->method, "GET") != 0)
		n += snprintf(x->head + n, sizeof(x->head) - (size_t)n, "Content-Length: %llu\r\n",
			(unsigned long long)g->body);
	n += snprintf(x->head + n, sizeof(x->head) - (size_t)n, "\r\n");
	x->head_len = (size_t)n;
}

void exchange_start(struct exchange *x, const struct group *g, unsigned client, uint64_t request, uint64_t now_us)
{
	x->group = g;
	x->asked_us = now_us;
	x->sent = x->again = 0;
	snprintf(x->id, sizeof(x->id), "%s-%u-%llu", g->id, client, (unsigned long long)request);
	write_head(x);
	expect_answer(x);
}

int exchange_is_sent(const struct exchange *x)
{
	return x->sent >= x->head_len + x->group->body;
}

size_t exchange_piece(struct exchange *x, uint64_t now_us, uint8_t out[static EXCHANGE_PIECE], uint64_t *wait_ms)
{
	const struct group *g = x->group;
	const uint64_t at = x->sent - x->head_len;
	uint64_t len = g->body - at;

	if (x->sent < x->head_len && g->head_every_ms > 0) {
		const uint64_t due_ms = x->asked_us / 1000 + x->sent * g->head_every_ms;
		*wait_ms = due_ms > now_us / 1000 ? due_ms - now_us / 1000 : 0;
		out[0] = (uint8_t)x->head[x->sent];
		return *wait_ms == 0;
	}
	if (x->sent < x->head_len) {
		memcpy(out, x->head + x->sent, x->head_len - x->sent);
		return x->head_len - (size_t)x->sent;
	}
	if (len > EXCHANGE_PIECE)
		len = EXCHANGE_PIECE;
	const uint64_t due = g->rate > 0 ? (now_us - x->asked_us) * g->rate / 1000000 : UINT64_MAX;
	if (x->again > 0) {
		len = x->again;
	} else if (due < at + len) {
		*wait_ms = (at + len - due) * 1000 / g->rate + 1;
		return 0;
	}
	pattern_fill(out, (size_t)len, g->body, at);
	return (size_t)len;
}

uint64_t exchange_went(struct exchange *x, size_t piece, size_t went)
{
	const int is_body = x->sent >= x->head_len;

	x->again = is_body && went == 0 ? piece : 0;
	x->sent += went;
	return is_body ? went : 0;
}
