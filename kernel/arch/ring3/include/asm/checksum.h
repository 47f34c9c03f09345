/* SPDX-License-Identifier: GPL-2.0 */
#ifndef _ASM_RING3_CHECKSUM_H
#define _ASM_RING3_CHECKSUM_H

#include <linux/compiler.h>
#include <linux/in6.h>
#include <asm/byteorder.h>

/* arch/ring3/kernel/csum.c: add-with-carry loops; the rest is generic. */
__wsum csum_partial(const void *buff, int len, __wsum sum);
#define csum_partial csum_partial
__sum16 ip_fast_csum(const void *iph, unsigned int ihl);
#define ip_fast_csum ip_fast_csum

static inline __sum16 csum_fold(__wsum sum)
{
	asm("addl %1,%0\n\t"
	    "adcl $0xffff,%0"
	    : "=r" (sum)
	    : "r" ((__force u32)sum << 16),
	      "0" ((__force u32)sum & 0xffff0000));
	return (__force __sum16)(~(__force u32)sum >> 16);
}
#define csum_fold csum_fold

static inline __wsum csum_tcpudp_nofold(__be32 saddr, __be32 daddr, __u32 len,
					__u8 proto, __wsum sum)
{
	asm("addl %1, %0\n\t"
	    "adcl %2, %0\n\t"
	    "adcl %3, %0\n\t"
	    "adcl $0, %0"
	    : "=r" (sum)
	    : "g" (daddr), "g" (saddr), "g" ((len + proto) << 8), "0" (sum));
	return sum;
}
#define csum_tcpudp_nofold csum_tcpudp_nofold

#include <asm-generic/checksum.h>

#endif
