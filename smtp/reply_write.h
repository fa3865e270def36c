/* reply_write.h: writes our replies and commands. No CR, LF or NUL of a text reaches the wire, so no text from outside
 * can add a line.
 */
#ifndef CSSL_SMTP_REPLY_WRITE_H
#define CSSL_SMTP_REPLY_WRITE_H

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

#endif
