/* reply_write.h: writes our replies and commands. No CR, LF or NUL of a text reaches the wire, so no text from outside
 * can add a line.
 */
#pragma once

#include <stddef.h>

#include "proto/wire.h"
#include "smtp/span.h"

#define SMTP_REPLY_LINE_MAX 512u /* RFC 5321 4.5.3.1.5, with code and CRLF */

/* Appends a reply: one line for each line of @text (parted by LF), "250-" before all but the last (RFC 5321 4.2.1), and
 * @enhanced behind each code (RFC 2034 4) unless it is empty. A line that would be longer than 512 bytes is cut there.
 * Bytes that are neither printable ASCII nor above 127 become '?'. When it does not fit, @w is spent. */
void smtp_reply_write(struct wire_writer *w, unsigned code, const char *enhanced, struct smtp_span text);

/* Appends @text with every control character as '?': for a command's argument, or a name from outside in a log line. */
void smtp_text_write(struct wire_writer *w, struct smtp_span text);

/* Append terminated text unchanged: only for our own words. */
void smtp_word_write(struct wire_writer *w, const char *word);

/* The replies of CSSL itself, in one table. Code that refuses something names a row; only the table has code, enhanced
 * code (RFC 2034, RFC 3463, RFC 5248) and text. */

/* X(name, code, enhanced code or "", text). A 421 ends the connection (RFC 5321 3.8). */
#define SMTP_OWN_REPLIES(X)                                                                                            \
	X(OK, 250, "2.0.0", "Ok")                                                                                      \
	X(BYE, 221, "2.0.0", "Bye")                                                                                    \
	X(HELP, 214, "2.0.0", "See RFC 5321")                                                                          \
	X(GO_AHEAD_TLS, 220, "2.0.0", "Ready to start TLS")                                                            \
	X(NOT_VERIFIED, 252, "2.5.0", "Cannot verify the user, but will take mail for it")                             \
	X(START_DATA, 354, "", "End data with <CR><LF>.<CR><LF>")                                                      \
	X(SHUTTING_DOWN, 421, "4.3.2", "Service is shutting down, try again")                                          \
	X(AGENT_LOST, 421, "4.3.2", "This server was lost and another took over, try again")                           \
	X(OVERLOADED, 421, "4.3.2", "Service is overloaded, try again later")                                          \
	X(MISCONFIGURED, 421, "4.3.5", "This address is not set up for mail")                                          \
	X(BACKEND_UNREACHABLE, 421, "4.4.1", "The mail server behind does not answer, try again later")                \
	X(BACKEND_LOST, 421, "4.4.2", "The mail server behind was lost, try again")                                    \
	X(RECEIVER_CLOSED, 421, "4.3.2", "The receiver takes no mail now, try again later")                            \
	X(DESTINATION_FULL, 421, "4.4.5", "Too many senders wait for this destination, try again later")               \
	X(TOO_SLOW, 421, "4.4.2", "Too slow, and others wait")                                                         \
	X(TIMED_OUT, 421, "4.4.2", "Timed out")                                                                        \
	X(BACKEND_BROKEN, 421, "4.5.0", "The mail server behind broke the protocol, try again later")                  \
	X(BACKEND_CHANGED, 421, "4.3.2", "The mail server behind has changed, try again")                              \
	X(BACKEND_NO_TLS, 421, "4.7.4", "The mail server behind offers no TLS, which is required")                     \
	X(TOO_MANY_ERRORS, 421, "4.7.0", "Too many errors")                                                            \
	X(TOO_MANY_COMMANDS, 421, "4.7.0", "Too many commands without mail")                                           \
	X(TOO_MANY_CONNECTIONS, 421, "4.7.0", "Too many connections")                                                  \
	X(FOREIGN_PROTOCOL, 421, "4.7.0", "This is a mail server")                                                     \
	X(NOT_PROVEN, 421, "4.7.5", "The receiver's certificate does not match its TLSA records")                      \
	X(DANE_UNKNOWN, 451, "4.7.5", "The receiver's TLSA records cannot be found out now")                           \
	X(NO_DANE, 451, "4.7.5", "The receiver has no usable TLSA records, which are required")                        \
	X(DNS_BOGUS, 451, "4.7.5", "DNSSEC does not confirm the records of the recipient's domain")                    \
	X(DNS_FAILED, 451, "4.4.3", "The DNS does not answer for the recipient's domain now")                          \
	X(LOCAL_ERROR, 451, "4.3.0", "Local error, try again later")                                                   \
	X(NAME_REFUSED_NOW, 450, "4.7.1", "The receiver refuses the name in EHLO for now")                             \
	X(CONGESTED, 451, "4.4.5", "The destination is busy, try again later")                                         \
	X(TOO_MANY_RECIPIENTS, 452, "4.5.3", "Too many recipients")                                                    \
	X(NO_ROOM, 452, "4.3.1", "No room for messages now, try again later")                                          \
	X(LINE_TOO_LONG, 500, "5.5.2", "Line is too long")                                                             \
	X(AUTH_TOO_LONG, 500, "5.5.6", "Authentication line is too long")                                              \
	X(BAD_BYTES, 500, "5.5.2", "Command has bytes that are not allowed")                                           \
	X(BAD_LINE_END, 500, "5.5.2", "Lines must end with <CR><LF>")                                                  \
	X(UNKNOWN_COMMAND, 500, "5.5.1", "Command is not known")                                                       \
	X(SYNTAX, 501, "5.5.4", "Syntax error in the arguments")                                                       \
	X(NO_ARGUMENT, 501, "5.5.4", "No argument is allowed")                                                         \
	X(BAD_NAME, 501, "5.5.4", "A host name or an address literal is needed")                                       \
	X(BAD_SENDER, 501, "5.1.7", "Bad syntax of the sender's address")                                              \
	X(BAD_RECIPIENT, 501, "5.1.3", "Bad syntax of the recipient's address")                                        \
	X(BAD_CHUNK, 501, "5.5.4", "A size, and perhaps LAST, is needed")                                              \
	X(BAD_PARAMETER, 501, "5.5.4", "Bad value of a parameter")                                                     \
	X(NOT_IMPLEMENTED, 502, "5.5.1", "Command is not implemented")                                                 \
	X(EHLO_FIRST, 503, "5.5.1", "Send EHLO first")                                                                 \
	X(BAD_SEQUENCE, 503, "5.5.1", "Bad sequence of commands")                                                      \
	X(NO_RECIPIENTS, 554, "5.5.1", "No valid recipients")                                                          \
	X(TLS_REQUIRED, 530, "5.7.0", "Must issue a STARTTLS command first")                                           \
	X(TLS_REQUIRED_FOR_AUTH, 538, "5.7.11", "Encryption is required for authentication")                           \
	X(REQUIRETLS_IMPOSSIBLE, 530, "5.7.30", "REQUIRETLS support is required")                                      \
	X(NOT_TRUSTED, 550, "5.7.0", "Not authorized")                                                                 \
	X(RELAY_DENIED, 550, "5.7.1", "No mail for this recipient is taken from you")                                  \
	X(NAME_REFUSED, 550, "5.7.1", "The receiver refuses the name in EHLO")                                         \
	X(SMUGGLING, 550, "5.6.0", "Message has line ends that are not allowed")                                       \
	X(NO_DOMAIN, 550, "5.1.2", "The recipient's domain does not exist")                                            \
	X(NO_RECEIVER, 550, "5.4.4", "The recipient's domain has no mail server that can be reached")                  \
	X(TOO_BIG, 552, "5.3.4", "Message is too big")                                                                 \
	X(NEEDS_UTF8, 553, "5.6.7", "Address needs SMTPUTF8")                                                          \
	X(TLS_ALREADY, 554, "5.5.1", "TLS is already active")                                                          \
	X(RECEIVER_REFUSES, 554, "5.3.2", "The receiver takes no mail")                                                \
	X(LOOP, 554, "5.4.6", "Mail loops")                                                                            \
	X(NO_MAIL, 556, "5.1.10", "The recipient's domain takes no mail")                                              \
	X(UNKNOWN_PARAMETER, 555, "5.5.4", "Parameter is not known")

enum smtp_own {
	SMTP_OWN_NONE, /* no reply: nothing is wrong */
#define X(name, code, enhanced, text) SMTP_OWN_##name,
	SMTP_OWN_REPLIES(X) SMTP_OWN_COUNT
#undef X
};

struct smtp_own_reply {
	const char *name, *enhanced, *text;
	unsigned code;
};

/* The row; never NULL for a number below SMTP_OWN_COUNT. NONE has code 0. */
const struct smtp_own_reply *smtp_own_reply(enum smtp_own which);

/* Append the reply with its CRLF; nothing for NONE. */
void smtp_own_write(struct wire_writer *w, enum smtp_own which);

/* The reply without its CRLF; behind its text the words of a server that are its cause (@said, one line; "": none).
 * Returns the length. */
size_t smtp_own_line(enum smtp_own which, const char *said, char out[static SMTP_REPLY_LINE_MAX]);
