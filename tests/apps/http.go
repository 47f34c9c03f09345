// SPDX-License-Identifier: GPL-2.0

// http serve ADDRESS PORT FOLDER | fetch URL - see src/apps/languages.rs
package main

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"sync"
	"sync/atomic"
)

func get(url string) []byte {
	response, err := http.Get(url)
	if err != nil {
		log.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		log.Fatal(err)
	}
	return body
}

func main() {
	if os.Args[1] == "serve" {
		files := http.FileServer(http.Dir(os.Args[4]))
		log.Fatal(http.ListenAndServe(net.JoinHostPort(os.Args[2], os.Args[3]), files))
	}
	http.DefaultTransport.(*http.Transport).MaxIdleConnsPerHost = 20
	base := os.Args[2]
	large := len(get(base + "/large"))
	var right int64
	var all sync.WaitGroup
	for i := 0; i < 20; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for n := 0; n < 25; n++ {
				if string(get(base+"/small")) == "hello\n" {
					atomic.AddInt64(&right, 1)
				}
			}
		}()
	}
	all.Wait()
	fmt.Println(large, right)
}
