// SPDX-License-Identifier: GPL-2.0
/* kTLS: a record is received into a buffer that has room for all of it, and into one that has not. */
#include "oracle.h"
#include <linux/tls.h>

int main(void)
{
	static const uint16_t versions[] = { TLS_1_2_VERSION, TLS_1_3_VERSION };

	for (unsigned int v = 0; v < ARRAY_SIZE(versions); v++) {
		struct tls12_crypto_info_aes_gcm_128 c = {
			.info = { versions[v], TLS_CIPHER_AES_GCM_128 },
		};
		static char b[20000];
		int p[2];

		tcp_pair(AF_INET, p);
		for (int i = 0; i < 2; i++)
			if (setsockopt(p[i], IPPROTO_TCP, TCP_ULP, "tls", 4))
				skip("no kTLS");
		T(setsockopt(p[0], 282 /* SOL_TLS */, TLS_TX, &c, sizeof(c)));
		T(setsockopt(p[1], 282, TLS_RX, &c, sizeof(c)));
		T(send(p[0], "hello", 5, 0));
		T(recv(p[1], b, 100, 0));
		T(send(p[0], "hello", 5, 0));
		T(recv(p[1], b, 3, 0));
		T(recv(p[1], b, 100, 0));
		T(send(p[0], b, 16384, 0));
		T(recv(p[1], b, sizeof(b), 0));
	}
	return 0;
}
