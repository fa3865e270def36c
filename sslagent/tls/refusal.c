/* refusal.c: maps OpenSSL's reasons to refusals; several reasons mean the same to an operator. */
#include "sslagent/tls/refusal.h"

#include <openssl/err.h>
#include <openssl/ssl.h>

#define ALERTS_END (SSL_AD_REASON_OFFSET + 256) /* reasons from SSL_AD_REASON_OFFSET on are received alerts */

static const struct {
	int reason;
	enum refusal refusal;
} reasons[] = {
	{ SSL_R_UNSUPPORTED_PROTOCOL, REFUSAL_VERSION },
	{ SSL_R_UNKNOWN_PROTOCOL, REFUSAL_VERSION },
	{ SSL_R_VERSION_TOO_LOW, REFUSAL_VERSION },
	{ SSL_R_VERSION_TOO_HIGH, REFUSAL_VERSION },
	{ SSL_R_BAD_LEGACY_VERSION, REFUSAL_VERSION },
	{ SSL_R_INAPPROPRIATE_FALLBACK, REFUSAL_VERSION },
	{ SSL_R_NO_SHARED_CIPHER, REFUSAL_CIPHER },
	{ SSL_R_NO_SUITABLE_KEY_SHARE, REFUSAL_CIPHER },
	{ SSL_R_NO_SUITABLE_GROUPS, REFUSAL_CIPHER },
	{ SSL_R_NO_SHARED_GROUPS, REFUSAL_CIPHER },
	{ SSL_R_NO_SUITABLE_SIGNATURE_ALGORITHM, REFUSAL_CIPHER },
	{ SSL_R_NO_SHARED_SIGNATURE_ALGORITHMS, REFUSAL_CIPHER },
	{ SSL_R_UNSUPPORTED_ELLIPTIC_CURVE, REFUSAL_CIPHER },
	{ SSL_R_NO_APPLICATION_PROTOCOL, REFUSAL_ALPN },
	{ SSL_R_CERTIFICATE_VERIFY_FAILED, REFUSAL_CERTIFICATE },
	{ SSL_R_PEER_DID_NOT_RETURN_A_CERTIFICATE, REFUSAL_CERTIFICATE },
	{ SSL_R_BAD_SIGNATURE, REFUSAL_CERTIFICATE },
};

enum refusal refusal_of_error(unsigned long error)
{
	const int reason = ERR_GET_REASON(error);

	if (error == 0 || ERR_GET_LIB(error) != ERR_LIB_SSL)
		return REFUSAL_OTHER;
	if (reason >= SSL_AD_REASON_OFFSET && reason < ALERTS_END)
		return REFUSAL_ALERT;
	for (unsigned i = 0; i < sizeof reasons / sizeof reasons[0]; i++)
		if (reasons[i].reason == reason)
			return reasons[i].refusal;
	return REFUSAL_MESSAGE;
}
