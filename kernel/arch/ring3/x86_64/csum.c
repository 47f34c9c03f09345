// SPDX-License-Identifier: GPL-2.0
/* csum.c - Internet checksum (RFC 1071) with add-with-carry, 64 bytes a turn */
#include <linux/export.h>
#include <linux/unaligned.h>
#include <asm/checksum.h>

static inline u64 add64(u64 sum, u64 v)
{
	asm("addq %1, %0\n\tadcq $0, %0" : "+r" (sum) : "rm" (v));
	return sum;
}

__wsum csum_partial(const void *buff, int len, __wsum wsum)
{
	const u8 *p = buff;
	u64 sum = (__force u32)wsum;

	while (len >= 64) {
		asm("addq 0*8(%[p]), %[s]\n\t"
		    "adcq 1*8(%[p]), %[s]\n\t"
		    "adcq 2*8(%[p]), %[s]\n\t"
		    "adcq 3*8(%[p]), %[s]\n\t"
		    "adcq 4*8(%[p]), %[s]\n\t"
		    "adcq 5*8(%[p]), %[s]\n\t"
		    "adcq 6*8(%[p]), %[s]\n\t"
		    "adcq 7*8(%[p]), %[s]\n\t"
		    "adcq $0, %[s]"
		    : [s] "+r" (sum)
		    : [p] "r" (p), "m" (*(const u8 (*)[64])p));
		p += 64;
		len -= 64;
	}
	while (len >= 8) {
		sum = add64(sum, get_unaligned((const u64 *)p));
		p += 8;
		len -= 8;
	}
	if (len > 0) {
		u64 tail = 0;

		/* Little endian: byte i of the rest is at bit 8i. */
		for (int i = 0; i < len; i++)
			tail |= (u64)p[i] << (8 * i);
		sum = add64(sum, tail);
	}
	sum = (sum & 0xffffffff) + (sum >> 32);
	sum = (sum & 0xffffffff) + (sum >> 32);
	return (__force __wsum)(u32)sum;
}
EXPORT_SYMBOL(csum_partial);

__sum16 ip_fast_csum(const void *iph, unsigned int ihl)
{
	return csum_fold(csum_partial(iph, ihl * 4, 0));
}
EXPORT_SYMBOL(ip_fast_csum);

__sum16 ip_compute_csum(const void *buff, int len)
{
	return csum_fold(csum_partial(buff, len, 0));
}
EXPORT_SYMBOL(ip_compute_csum);
