#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# An nginx of one process with two documents, 1k and 32k: nginx.sh PORT [FOLDER]
# Its first line says that it listens. The folder goes when it ends.
set -e
folder=$(mktemp -d "${TMPDIR:-/tmp}/ring3-bench-nginx.XXXXXX")
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/html" "$folder/temp"
head -c 1024 /dev/zero | tr '\0' x >"$folder/html/1k"
head -c 32768 /dev/zero | tr '\0' x >"$folder/html/32k"
chmod -R a+rX "$folder"
cat >"$folder/conf" <<CONF
daemon off;
master_process off;
pid $folder/pid;
error_log /dev/stderr error;
worker_rlimit_nofile 16384;
events { worker_connections 12000; }
http {
	access_log off;
	sendfile on;
	tcp_nopush on;
	keepalive_requests 1000000000;
	client_body_temp_path $folder/temp;
	proxy_temp_path $folder/temp;
	fastcgi_temp_path $folder/temp;
	uwsgi_temp_path $folder/temp;
	scgi_temp_path $folder/temp;
	server {
		listen $1 backlog=4096;
		root $folder/html;
	}
}
CONF
nginx -p "$folder" -c "$folder/conf" &
pid=$!
trap 'kill -QUIT $pid 2>/dev/null' TERM INT
# A process that has written its pid listens already.
until [ -s "$folder/pid" ]; do
	kill -0 $pid 2>/dev/null || exit 1
	sleep 0.01
done
echo ready
# The first wait ends with the signal, the second with nginx.
wait $pid || wait $pid || true
