/* fuzz_dns_records.c: any bytes as the data of DNS records. The first byte is the length of the first record; the list
 * of mail servers is made of both. */
#include "smtpproxy/dns/records.h"

#include <string.h>

#include "tests/fuzz/must.h"

static uint32_t middle(uint32_t below)
{
	return below / 2;
}

static void read_one(struct dns_record r)
{
	struct sockaddr_storage address;
	struct dns_tlsa tlsa;
	struct dns_mx mx;
	if (dns_mx_read(r, &mx) == 0) {
		MUST(strlen(mx.host) <= DNS_NAME_MAX);
		MUST(strpbrk(mx.host, " \r\n\t") == NULL);
	}
	if (dns_address_read(r, DNS_A, &address) == 0)
		MUST(r.len == 4);
	if (dns_address_read(r, DNS_AAAA, &address) == 0)
		MUST(r.len == 16);
	if (dns_tlsa_read(r, &tlsa) == 0) {
		MUST(tlsa.len == r.len - 3 && tlsa.data == r.data + 3);
		MUST(!dns_tlsa_is_usable(&tlsa) || tlsa.usage >= DNS_TLSA_DANE_TA);
	}
}

static void read_list(const struct dns_record records[2])
{
	struct mx_list list;
	const enum mx_verdict verdict = mx_list_read(&list, records, 2, "own.example", middle);
	MUST((verdict == MX_HOSTS) == (list.count > 0));
	for (unsigned i = 0; i < list.count; i++) {
		MUST(list.at[i].host[0] != '\0' && strcmp(list.at[i].host, "own.example") != 0);
		MUST(i == 0 || list.at[i - 1].preference <= list.at[i].preference);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *in, size_t len)
{
	if (len == 0)
		return 0;
	const size_t left = len - 1, first = in[0] < left ? in[0] : left;
	const struct dns_record records[2] = { { in + 1, first }, { in + 1 + first, left - first } };
	read_one(records[0]);
	read_one(records[1]);
	read_list(records);
	return 0;
}
