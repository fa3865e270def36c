/* fuzz_tx_message.c: messages about named transactions from another process. One that can be read is written as the
 * same bytes, and a ledger takes all of them. */
#include <sodium.h>
#include <string.h>

#include "smtpproxy/ledger/tx_before.h"
#include "smtpproxy/ledger/tx_message.h"
#include "tests/fuzz/must.h"

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	uint8_t out[TX_MESSAGE_MAX + 2];
	struct tx_message m;
	struct tx_before *b;
	const int r = tx_message_read(in, len, &m);
	if (r > 0 && (size_t)r <= TX_MESSAGE_MAX)
		MUST(tx_message_write(&m, out) == (size_t)r && memcmp(out, in, (size_t)r) == 0);
	MUST(sodium_init() >= 0);
	b = tx_before_create(3);
	MUST(b);
	MUST(tx_before_read(b, in, len) <= (int)len);
	tx_before_destroy(b);
	return 0;
}
