/* served_backend.c: see served_backend.h. */
#include "tests/unit/sslagent/connection/served_backend.h"

#include <errno.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#include "tests/unit/sslagent/connection/connection_fixture.h"

int backend = -1;
static int listening = -1;

void backend_start(struct sockaddr_storage *address)
{
	backend = -1;
	listening = socket_listen(OVER_TCP4, address);
	setsockopt(listening, SOL_SOCKET, SO_RCVBUF, &(int){ 65536 },
		sizeof(int)); /* what the kernel takes for a backend that does not read */
}

void backend_stop(void)
{
	close(listening);
}

void backend_drop(void)
{
	if (backend >= 0)
		close(backend);
	backend = -1;
}

int backend_waits(void)
{
	struct timeval none = { 0 };
	fd_set set;

	FD_ZERO(&set);
	FD_SET(listening, &set);
	return select(listening + 1, &set, NULL, NULL, &none) > 0;
}

void backend_stop_listening(void)
{
	ck_assert_int_eq(shutdown(listening, SHUT_RDWR), 0);
}

void backend_take(void)
{
	ck_assert(backend_waits());
	if (backend >= 0)
		close(backend);
	backend = accept4(listening, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	ck_assert_int_ge(backend, 0);
}

void backend_accept(void)
{
	carry_until(backend_waits());
	backend_take();
}

void backend_hear(const char *text)
{
	char buffer[1024];

	ck_assert_uint_le(strlen(text), sizeof buffer);
	read_exactly(backend, buffer, strlen(text));
	assert_same("the backend", (uint8_t *)buffer, (const uint8_t *)text, strlen(text));
}

void backend_expect_into(uint8_t *out, size_t len)
{
	size_t have = 0;
	ssize_t n = 0;

	while (have < len) {
		carry_until((n = read(backend, out + have, len - have)) >= 0 || errno != EAGAIN);
		ck_assert_msg(n > 0, "the backend's connection ended after %zu of %zu bytes", have, len);
		have += (size_t)n;
	}
}

void backend_expect(const void *data, size_t len)
{
	static uint8_t buffer[4u << 20];

	backend_expect_into(buffer, len);
	assert_same("the backend", buffer, data, len);
}

void backend_expect_text(const char *text)
{
	backend_expect(text, strlen(text));
}

void backend_say(const void *data, size_t len)
{
	const uint8_t *at = data;
	ssize_t n = 0;

	while (len > 0) {
		carry_until((n = write(backend, at, len)) > 0);
		at += n;
		len -= (size_t)n;
	}
}

void backend_say_text(const char *text)
{
	backend_say(text, strlen(text));
}

int backend_end(void)
{
	static uint8_t waste[65536];
	ssize_t n = 0;

	carry_until((n = read(backend, waste, sizeof waste)) == 0 || (n < 0 && errno != EAGAIN));
	return n == 0 ? 0 : -1;
}

void backend_hang_up(void)
{
	close(backend);
	backend = -1;
}

void backend_reset_now(void)
{
	reset(OVER_TCP4, backend);
	backend = -1;
}
