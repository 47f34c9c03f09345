// SPDX-License-Identifier: GPL-2.0

package main

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"time"
)

// What may be sent or received at once.
const large = 1 << 20

func ready() {
	fmt.Println("ready")
}

// What comes goes back.
func (h *host) echo(port string) error {
	listener, err := h.listen(port)
	if err != nil {
		return err
	}
	ready()
	connection, err := listener.Accept()
	if err != nil {
		return err
	}
	data := make([]byte, large)
	for {
		n, err := connection.Read(data)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if _, err := connection.Write(data[:n]); err != nil {
			return err
		}
	}
}

// The same with datagrams; a byte on the control connection ends it.
func (h *host) echoDatagrams(port string) error {
	listener, err := h.listen(port)
	if err != nil {
		return err
	}
	socket, err := h.bind(port)
	if err != nil {
		return err
	}
	go func() {
		if control, err := listener.Accept(); err == nil {
			control.Read(make([]byte, 1))
		}
		os.Exit(0)
	}()
	ready()
	data := make([]byte, 65536)
	for {
		n, from, err := socket.ReadFrom(data)
		if err != nil {
			return err
		}
		// What is not sent is lost, as datagrams are.
		_, _ = socket.WriteTo(data[:n], from)
	}
}

// Datagrams are counted; each byte on the control connection asks for the counts.
func (h *host) count(port string) error {
	var packets, first, last atomic.Uint64

	listener, err := h.listen(port)
	if err != nil {
		return err
	}
	socket, err := h.bind(port)
	if err != nil {
		return err
	}
	go func() {
		if control, err := listener.Accept(); err == nil {
			asked := make([]byte, 1)
			for {
				if _, err := io.ReadFull(control, asked); err != nil {
					break
				}
				counts := []uint64{packets.Load(), first.Load(), last.Load()}
				if binary.Write(control, binary.NativeEndian, counts) != nil {
					break
				}
			}
		}
		os.Exit(0)
	}()
	ready()
	start := time.Now()
	data := make([]byte, 65536)
	for {
		if _, err := socket.Read(data); err != nil {
			return err
		}
		if packets.Load()%16 == 0 {
			now := uint64(time.Since(start))
			last.Store(now)
			first.CompareAndSwap(0, now)
		}
		packets.Add(1)
	}
}

type order struct {
	Size, Back uint32
	Ns         uint64
}

// An order, then data in one of the directions.
func (h *host) stream(port string) error {
	var wanted order

	listener, err := h.listen(port)
	if err != nil {
		return err
	}
	ready()
	connection, err := listener.Accept()
	if err != nil {
		return err
	}
	if err := binary.Read(connection, binary.NativeEndian, &wanted); err != nil {
		return err
	}
	data := make([]byte, large)
	if wanted.Back != 0 {
		end := time.Now().Add(time.Duration(wanted.Ns))
		for time.Now().Before(end) {
			if _, err := connection.Write(data[:wanted.Size]); err != nil {
				return err
			}
		}
		if half, ok := connection.(interface{ CloseWrite() error }); ok {
			if err := half.CloseWrite(); err != nil {
				return err
			}
		}
		_, _ = connection.Read(data)
		return nil
	}
	return receive(connection, data)
}

// Bytes and time from the first that came to the last.
func receive(connection net.Conn, data []byte) error {
	var start time.Time
	var total uint64

	for {
		n, err := connection.Read(data)
		if err == io.EOF {
			break
		}
		if err != nil {
			return err
		}
		if start.IsZero() {
			start = time.Now()
		} else {
			total += uint64(n)
		}
	}
	result := []uint64{total, uint64(time.Since(start))}
	if err := binary.Write(connection, binary.NativeEndian, result); err != nil {
		return err
	}
	// So that it leaves before the stack ends with the program.
	time.Sleep(20 * time.Millisecond)
	return nil
}

// A kilobyte for each request.
func (h *host) http(port string) error {
	listener, err := h.listen(port)
	if err != nil {
		return err
	}
	answer := []byte("HTTP/1.1 200 OK\r\nContent-Length: 1024\r\n\r\n")
	answer = append(answer, bytes.Repeat([]byte("x"), 1024)...)
	ready()
	for {
		connection, err := listener.Accept()
		if err != nil {
			return err
		}
		go answerAll(connection, answer)
	}
}

func answerAll(connection net.Conn, answer []byte) {
	defer connection.Close()
	reader := bufio.NewReader(connection)
	for {
		line, err := reader.ReadSlice('\n')
		if err != nil {
			return
		}
		if len(line) > 2 {
			continue
		}
		if _, err := connection.Write(answer); err != nil {
			return
		}
	}
}
