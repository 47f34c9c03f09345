/* SPDX-License-Identifier: GPL-2.0 */
/* tap.h - a TAP as lwIP's network interface, and the loop that drives it */
#ifndef TAP_H
#define TAP_H

#include <stdint.h>

/* Opens the TAP `name` with the address `addr`/24; dies with a message. */
void tap_open(const char *name, const char *addr);

/* Packets and timers, for ever; calls `idle` after each burst of packets, if there is one. */
void tap_loop(void (*idle)(void)) __attribute__((noreturn));

uint64_t now_ns(void);
void die(const char *what) __attribute__((noreturn));

#endif
