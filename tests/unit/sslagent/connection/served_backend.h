/* served_backend.h: the backend of the fixture's agents: a real socket, served by the test. */
#pragma once

#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>

extern int backend; /* the socket of the conversation, after backend_accept(); -1 */

void backend_start(struct sockaddr_storage *address); /* the fixture calls these three */
void backend_stop(void);
void backend_drop(void); /* the conversation */

void backend_accept(void);
void backend_take(void);                           /* it waits: backend_waits() */
void backend_hear(const char *text);               /* as backend_expect_text(), with nothing but the loop's turns */
void backend_expect(const void *data, size_t len); /* exactly that is next */
void backend_expect_text(const char *text);
void backend_expect_into(uint8_t *out, size_t len); /* whatever it is */
void backend_say(const void *data, size_t len);
void backend_say_text(const char *text);
/* 0: the agent's FIN, -1: reset; what came before is thrown away. */
int backend_end(void);
void backend_hang_up(void); /* FIN and close */
void backend_reset_now(void);
void backend_stop_listening(void);
int backend_waits(void); /* 1: another connection waits to be accepted */
