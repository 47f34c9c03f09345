/* SPDX-License-Identifier: GPL-2.0 */
/*
 * lwIP for speed on a machine with memory: one thread, the raw interface, windows of
 * 1 MiB, buffers for thousands of packets, no statistics and no assertions.
 */
#ifndef LWIPOPTS_H
#define LWIPOPTS_H

#define NO_SYS				1
#define SYS_LIGHTWEIGHT_PROT		0
#define LWIP_SOCKET			0
#define LWIP_NETCONN			0
#define LWIP_TIMERS			1

#define LWIP_NOASSERT			1
#define LWIP_STATS			0
#define MEM_ALIGNMENT			8
#define MEM_SIZE			(64 << 20)
#define MEMP_NUM_PBUF			8192
#define MEMP_NUM_TCP_PCB		2048
#define MEMP_NUM_TCP_SEG		16384
#define PBUF_POOL_SIZE			8192
#define PBUF_POOL_BUFSIZE		1600

#define LWIP_IPV4			1
#define LWIP_IPV6			0
#define LWIP_ARP			1
#define LWIP_ETHERNET			1
#define LWIP_ICMP			1
#define LWIP_DHCP			0
#define LWIP_DNS			0
#define LWIP_UDP			1
#define LWIP_TCP			1
#define LWIP_SINGLE_NETIF		1

#define TCP_MSS				1460
#define LWIP_WND_SCALE			1
#define TCP_RCV_SCALE			5
#define TCP_WND				(1 << 20)
#define TCP_SND_BUF			(1 << 20)
#define TCP_SND_QUEUELEN		8192
#define TCP_SNDLOWAT			(48 << 10)
#define TCP_SNDQUEUELOWAT		4096
#define TCP_LISTEN_BACKLOG		1
#define TCP_DEFAULT_LISTEN_BACKLOG	255
#define LWIP_TCP_SACK_OUT		1
#define LWIP_TCP_TIMESTAMPS		0
#define LWIP_CHKSUM_ALGORITHM		3
#define LWIP_CHECKSUM_ON_COPY		1

#endif
