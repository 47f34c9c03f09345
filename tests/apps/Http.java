// SPDX-License-Identifier: GPL-2.0

import com.sun.net.httpserver.HttpServer;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse.BodyHandlers;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;

/** Http serve ADDRESS PORT FOLDER | fetch URL - see src/apps/languages.rs */
public class Http {
	static void serve(String address, int port, Path folder) throws Exception {
		var server = HttpServer.create(new InetSocketAddress(address, port), 0);
		server.createContext("/", exchange -> {
			var name = Path.of(exchange.getRequestURI().getPath()).getFileName();
			var body = Files.readAllBytes(folder.resolve(name));
			exchange.sendResponseHeaders(200, body.length);
			try (var out = exchange.getResponseBody()) {
				out.write(body);
			}
		});
		server.setExecutor(Executors.newFixedThreadPool(8));
		server.start();
	}

	static byte[] get(HttpClient client, String url) throws Exception {
		var request = HttpRequest.newBuilder(URI.create(url)).build();
		return client.send(request, BodyHandlers.ofByteArray()).body();
	}

	static void fetch(String base) throws Exception {
		var client = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
		var large = get(client, base + "/large").length;
		var right = new AtomicInteger();
		var pool = Executors.newFixedThreadPool(20);
		for (int i = 0; i < 500; i++) {
			pool.submit(() -> {
				if (new String(get(client, base + "/small")).equals("hello\n"))
					right.incrementAndGet();
				return null;
			});
		}
		pool.shutdown();
		pool.awaitTermination(50, TimeUnit.SECONDS);
		System.out.println(large + " " + right.get());
		System.exit(0);
	}

	public static void main(String[] args) throws Exception {
		if (args[0].equals("serve"))
			serve(args[1], Integer.parseInt(args[2]), Path.of(args[3]));
		else
			fetch(args[1]);
	}
}
