// SPDX-License-Identifier: GPL-2.0
/*
 * fetch URL - what curl does for http://ADDRESS:PORT/PATH: prints the document
 *
 * For root file systems whose C library has no curl in Debian (tests/distributions).
 */
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

int main(int argc, char **argv)
{
	struct addrinfo hint = { .ai_socktype = SOCK_STREAM }, *to;
	char host[64], port[8], path[128], buffer[4096], *body;
	size_t len = 0;
	ssize_t n;
	int s;

	if (argc != 2 || sscanf(argv[1], "http://%63[^:]:%7[0-9]/%127s", host, port, path) != 3)
		return 2;
	if (getaddrinfo(host, port, &hint, &to))
		return 3;
	s = socket(to->ai_family, to->ai_socktype, 0);
	if (s < 0 || connect(s, to->ai_addr, to->ai_addrlen)) {
		perror("fetch");
		return 4;
	}
	dprintf(s, "GET /%s HTTP/1.0\r\nHost: %s\r\n\r\n", path, host);
	while ((n = read(s, buffer + len, sizeof(buffer) - 1 - len)) > 0)
		len += n;
	buffer[len] = 0;
	body = strstr(buffer, "\r\n\r\n");
	if (!body || strncmp(buffer, "HTTP/1.", 7) || strncmp(buffer + 8, " 200", 4))
		return 5;
	return fputs(body + 4, stdout) < 0;
}
