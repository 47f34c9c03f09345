// SPDX-License-Identifier: GPL-2.0
/*
 * string.c - the few string functions that freestanding code needs
 */
#include "gate.h"

void *memcpy(void *d, const void *s, size_t n)
{
	void *ret = d;

	asm volatile("rep movsb" : "+D"(d), "+S"(s), "+c"(n) : : "memory");
	return ret;
}

void *memmove(void *d, const void *s, size_t n)
{
	char *to = d;
	const char *from = s;

	if (to <= from || to >= from + n)
		return memcpy(d, s, n);
	while (n--)
		to[n] = from[n];
	return d;
}

void *memset(void *d, int c, size_t n)
{
	void *ret = d;

	asm volatile("rep stosb" : "+D"(d), "+c"(n) : "a"(c) : "memory");
	return ret;
}

int memcmp(const void *a, const void *b, size_t n)
{
	const u8 *x = a, *y = b;

	for (; n; n--, x++, y++)
		if (*x != *y)
			return *x - *y;
	return 0;
}

size_t strlen(const char *s)
{
	size_t n = 0;

	while (s[n])
		n++;
	return n;
}

size_t strnlen(const char *s, size_t max)
{
	size_t n = 0;

	while (n < max && s[n])
		n++;
	return n;
}

int strcmp(const char *a, const char *b)
{
	while (*a && *a == *b)
		a++, b++;
	return (u8)*a - (u8)*b;
}

int strncmp(const char *a, const char *b, size_t n)
{
	for (; n; n--, a++, b++) {
		if (*a != *b)
			return (u8)*a - (u8)*b;
		if (!*a)
			break;
	}
	return 0;
}

char *strchr(const char *s, int c)
{
	for (;; s++) {
		if (*s == (char)c)
			return (char *)s;
		if (!*s)
			return NULL;
	}
}

char *strrchr(const char *s, int c)
{
	const char *found = NULL;

	for (;; s++) {
		if (*s == (char)c)
			found = s;
		if (!*s)
			return (char *)found;
	}
}

u64 gate_strtou(const char *s, int base, const char **end)
{
	u64 v = 0;

	for (;; s++) {
		int d = *s >= '0' && *s <= '9' ? *s - '0' :
			*s >= 'a' && *s <= 'f' ? *s - 'a' + 10 : 99;

		if (d >= base)
			break;
		v = v * base + d;
	}
	if (end)
		*end = s;
	return v;
}

static char *put_number(char *end, u64 v, unsigned int base)
{
	do {
		*--end = "0123456789abcdef"[v % base];
		v /= base;
	} while (v);
	return end;
}

int gate_vformat(char *buf, size_t size, const char *fmt, va_list ap)
{
	size_t n = 0;

	for (; *fmt; fmt++) {
		char tmp[24], *s = tmp + sizeof(tmp) - 1;
		bool wide = false;
		s64 v;

		*s = 0;
		if (*fmt != '%') {
			*--s = *fmt;
			goto emit;
		}
		while (*++fmt == 'l' || *fmt == 'z')
			wide = true;
		switch (*fmt) {
		case 's':
			s = va_arg(ap, char *);
			if (!s)
				s = "(null)";
			break;
		case 'c':
			*--s = va_arg(ap, int);
			break;
		case 'd':
			v = wide ? va_arg(ap, long) : va_arg(ap, int);
			s = put_number(s, v < 0 ? -(u64)v : (u64)v, 10);
			if (v < 0)
				*--s = '-';
			break;
		case 'u':
			s = put_number(s, wide ? va_arg(ap, unsigned long) :
				       va_arg(ap, unsigned int), 10);
			break;
		case 'x':
			s = put_number(s, wide ? va_arg(ap, unsigned long) :
				       va_arg(ap, unsigned int), 16);
			break;
		case 'p':
			s = put_number(s, va_arg(ap, unsigned long), 16);
			*--s = 'x';
			*--s = '0';
			break;
		default:
			*--s = *fmt;
		}
emit:
		for (; *s; s++)
			if (n + 1 < size)
				buf[n++] = *s;
	}
	if (size)
		buf[n] = 0;
	return n;
}

int gate_format(char *buf, size_t size, const char *fmt, ...)
{
	va_list ap;
	int n;

	va_start(ap, fmt);
	n = gate_vformat(buf, size, fmt, ap);
	va_end(ap);
	return n;
}

/* gcc calls this for __builtin_popcountl() without -mpopcnt. */
int __popcountdi2(long v);
int __popcountdi2(long v)
{
	u64 x = v;
	int n = 0;

	for (; x; x &= x - 1)
		n++;
	return n;
}
