#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
# The servers of many processes of bench/servers.toml, and what asks them:
#	servers.sh LOADS serve KIND PORT		its first line says that it listens; SIGTERM ends it
#	servers.sh LOADS ask KIND ADDRESS PORT X SECONDS	prints "rate REQUESTS"
# LOADS is the folder of compiled loads. A server may use the ports up to PORT + 3 of its own loopback.
set -e
load=$1
PATH=$PATH:/usr/sbin:/sbin
for bin in /usr/lib/postgresql/*/bin; do
	[ ! -d "$bin" ] || PATH=$PATH:$bin
done

# as_nobody COMMAND...: PostgreSQL does not run as root
as_nobody() {
	if [ "$(id -u)" = 0 ]; then
		setpriv --reuid=65534 --regid=65534 --clear-groups -- "$@"
	else
		"$@"
	fi
}

# until_listens PORT: ends when there is a listener, or when the server has ended
until_listens() {
	hex=$(printf ':%04X ' "$1")
	until cat /proc/net/tcp /proc/net/tcp6 2>/dev/null | grep -q "$hex.* 0A "; do
		kill -0 "$pid" 2>/dev/null || { cat "$folder/log" >&2; exit 1; }
		sleep 0.02
	done
}

# nginx PORT WORKERS LOCATION: an nginx in front, or behind
nginx_config() {
	cat >"$folder/nginx.conf" <<-CONF
	daemon off; user root; worker_processes $2;
	pid $folder/nginx.pid; error_log $folder/nginx.log error;
	events { worker_connections 1000; }
	http {
		access_log off; keepalive_requests 1000000000;
		client_body_temp_path $folder/temp; proxy_temp_path $folder/temp;
		fastcgi_temp_path $folder/temp; uwsgi_temp_path $folder/temp; scgi_temp_path $folder/temp;
		server { listen $1 backlog=1024; root $folder/html; $3 }
	}
	CONF
}

apache_config() {
	cat >"$folder/apache.conf" <<-CONF
	ServerName bench
	ServerRoot $folder
	PidFile $folder/apache.pid
	ErrorLog $folder/log
	DefaultRuntimeDir $folder
	Mutex file:$folder
	Listen 0.0.0.0:$port
	LoadModule mpm_$1_module /usr/lib/apache2/modules/mod_mpm_$1.so
	LoadModule authz_core_module /usr/lib/apache2/modules/mod_authz_core.so
	DocumentRoot $folder/html
	User nobody
	Group nogroup
	KeepAlive On
	MaxKeepAliveRequests 0
	KeepAliveTimeout 30
	$2
	CONF
}

serve() {
	kind=$1 port=$2
	next=$((port + 1))
	folder=$(mktemp -d "${TMPDIR:-/tmp}/ring3-bench-servers.XXXXXX")
	pid=
	behind=
	trap 'rm -rf "$folder"' EXIT
	mkdir "$folder/html" "$folder/temp"
	head -c 1024 /dev/zero | tr '\0' x >"$folder/html/1k"
	chmod -R a+rwX "$folder"
	case $kind in
	postgresql)
		[ "$(id -u)" != 0 ] || chown 65534:65534 "$folder"
		as_nobody initdb -D "$folder/data" -U me -A trust -N --no-instructions >"$folder/log"
		echo 'host all all 0.0.0.0/0 trust' >>"$folder/data/pg_hba.conf"
		as_nobody postgres -D "$folder/data" -p "$port" -k "$folder" -c listen_addresses='*' \
			-c fsync=off -c max_connections=60 -c shared_buffers=256MB \
			-c checkpoint_timeout=1h -c max_wal_size=4GB -c autovacuum=off >>"$folder/log" 2>&1 &
		pid=$!
		until_listens "$port"
		until as_nobody pgbench -i -q -s 10 -I dtGvp -h "$folder" -p "$port" -U me postgres >>"$folder/log" 2>&1; do
			kill -0 $pid || exit 1
			sleep 0.2
		done
		;;
	redis)
		redis-server --port "$port" --bind 0.0.0.0 --protected-mode no --save '' --appendonly no \
			--dir "$folder" >"$folder/log" &
		;;
	memcached)
		memcached -t 4 -u root -l 0.0.0.0 -p "$port" -U 0 -c 4096 &
		;;
	haproxy)
		nginx_config "$next" 1 ''
		nginx -p "$folder" -c "$folder/nginx.conf" -e "$folder/nginx.log" &
		behind=$!
		cat >"$folder/haproxy.cfg" <<-CONF
		global
		 nbthread 2
		 maxconn 1000
		defaults
		 mode http
		 timeout connect 5s
		 timeout client 30s
		 timeout server 30s
		listen web
		 bind 0.0.0.0:$port
		 server a 127.0.0.1:$next
		CONF
		haproxy -db -f "$folder/haproxy.cfg" >"$folder/log" 2>&1 &
		;;
	prefork)
		apache_config prefork 'StartServers 16
		MinSpareServers 16
		MaxSpareServers 16
		MaxRequestWorkers 16'
		# At its end it signals its whole process group.
		setsid apache2 -D FOREGROUND -f "$folder/apache.conf" &
		;;
	event)
		apache_config event 'StartServers 2
		ServerLimit 2
		ThreadsPerChild 32
		MaxRequestWorkers 64
		MinSpareThreads 1
		MaxSpareThreads 64'
		setsid apache2 -D FOREGROUND -f "$folder/apache.conf" &
		;;
	gunicorn)
		cat >"$folder/app.py" <<-'PY'
		def app(_environ, start_response):
		    start_response("200 OK", [("Content-Type", "text/plain"), ("Content-Length", "6")])
		    return [b"hello\n"]
		PY
		gunicorn -w 2 -b "0.0.0.0:$port" --chdir "$folder" --log-level error app:app >"$folder/log" 2>&1 &
		;;
	node)
		cat >"$folder/cluster.js" <<-'JS'
		const cluster = require('cluster');
		if (cluster.isPrimary) {
			cluster.fork();
			cluster.fork();
		} else {
			require('http').createServer((_, response) => response.end('hello\n')).listen(+process.argv[2]);
		}
		JS
		node "$folder/cluster.js" "$port" >"$folder/log" 2>&1 &
		;;
	php)
		echo '<?php echo "hello\n";' >"$folder/html/index.php"
		cat >"$folder/fpm.conf" <<-CONF
		[global]
		error_log = $folder/log
		daemonize = no
		[www]
		user = nobody
		group = nogroup
		listen = 127.0.0.1:$next
		pm = static
		pm.max_children = 4
		CONF
		php-fpm8.2 -R -n -y "$folder/fpm.conf" &
		behind=$!
		pid=$behind
		until_listens "$next"
		nginx_config "$port" 1 "location / {
			fastcgi_pass 127.0.0.1:$next;
			fastcgi_param SCRIPT_FILENAME $folder/html/index.php;
			fastcgi_param REQUEST_METHOD \$request_method; }"
		nginx -p "$folder" -c "$folder/nginx.conf" -e "$folder/nginx.log" &
		;;
	mosquitto)
		printf 'listener %s 0.0.0.0\nallow_anonymous true\nlog_type error\nuser root\n' "$port" >"$folder/mosquitto.conf"
		mosquitto -c "$folder/mosquitto.conf" >"$folder/log" 2>&1 &
		;;
	echo)
		"$load/asks" serve "$port" >/dev/null &
		;;
	*)
		echo "servers.sh: no server is called $kind" >&2
		exit 2
		;;
	esac
	[ "$kind" = postgresql ] || pid=$!
	trap 'kill -TERM $pid $behind 2>/dev/null' TERM INT
	until_listens "$port"
	echo ready
	# The first wait ends with the signal, the second with the server.
	wait "$pid" || wait "$pid" || true
	[ -z "$behind" ] || { kill -TERM "$behind" 2>/dev/null || true; wait "$behind" || true; }
}

# whole SECONDS: what counts whole seconds counts one at least
whole() {
	n=$(printf '%.0f' "$1")
	[ "$n" -ge 1 ] || n=1
	echo "$n"
}

# requests CONNECTIONS PATH: by wrk
requests() {
	wrk -t 1 -c "$1" -d "$(whole "$seconds")s" "http://$address:$port/$2" >"$said"
	! grep -E 'Non-2xx|Socket errors' "$said" >&2
	awk '/^Requests\/sec:/ { print "rate", $2 }' "$said"
}

ask() {
	kind=$1 address=$2 port=$3 x=$4 seconds=$5
	said=$(mktemp "${TMPDIR:-/tmp}/ring3-bench-said.XXXXXX")
	trap 'rm -f "$said"' EXIT
	case $kind in
	pgbench)
		clients=${x#* }
		threads=$((clients < 2 ? clients : 2))
		[ "${x% *}" = rw ] || set -- -S
		[ "$1" = -S ] || set --
		pgbench -n "$@" -c "$clients" -j "$threads" -T "$(whole "$seconds")" \
			-h "$address" -p "$port" -U me postgres >"$said"
		grep -q 'number of failed transactions: 0 ' "$said" || { cat "$said" >&2; exit 1; }
		awk '/^tps = / { print "rate", $3 }' "$said"
		;;
	redis)
		redis-benchmark -h "$address" -p "$port" -t "$x" -c 50 -n 60000 --csv 2>/dev/null |
			tr -d '"' | awk -F, -v x="$x" 'tolower($1) == x { print "rate", $2 }'
		;;
	wrk-*) requests "${kind#wrk-}" '' ;;
	wrk1k-*) requests "${kind#wrk1k-}" 1k ;;
	memcached) "$load/asks" memcached "$address" "$port" 32 "$seconds" ;;
	mosquitto) "$load/asks" mqtt "$address" "$port" 16 "$seconds" ;;
	echo) "$load/asks" echo "$address" "$port" 8 "$seconds" ;;
	*)
		echo "servers.sh: nothing asks like $kind" >&2
		exit 2
		;;
	esac
}

what=$2
shift 2
case $what in
serve) serve "$@" ;;
ask) ask "$@" ;;
*) echo "usage: see the head of servers.sh" >&2; exit 2 ;;
esac
