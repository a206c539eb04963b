package main

import (
	"bytes"
	"context"
	"crypto/tls"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strings"
	"time"
)

const grpc = "application/grpc"

// answerCall is the server's side of a gRPC call: one message, which tells what was received.
func answerCall(w http.ResponseWriter, r *http.Request, told seen) {
	_, _ = io.Copy(io.Discard, r.Body)
	message, _ := json.Marshal(told)
	w.Header().Set("Content-Type", grpc)
	w.Header().Set("Trailer", "Grpc-Status")
	_, _ = w.Write(frame(message))
	w.Header().Set("Grpc-Status", "0")
}

// frame is a message as gRPC puts it on the wire: not compressed, and how long it is.
func frame(message []byte) []byte {
	head := make([]byte, 5)
	binary.BigEndian.PutUint32(head[1:], uint32(len(message)))
	return append(head, message...)
}

// asked is what came back.
type asked struct {
	Status   int      `json:"status"`
	Location string   `json:"location"`
	Names    []string `json:"names"`
	Grpc     string   `json:"grpc"`
	Body     string   `json:"body"`
}

// askAt sends one request for URL to ADDR, whatever address the URL's host has, takes any certificate
// and tells whom it names. grpc: and grpcs: are calls.
func askAt(args []string) error {
	if len(args) < 2 {
		return errors.New("usage: testapp ask ADDR URL [Name:value...]")
	}
	url, call := strings.CutPrefix(args[1], "grpc")
	method, body := http.MethodGet, io.Reader(http.NoBody)
	if call {
		url = "http" + url
		method, body = http.MethodPost, bytes.NewReader(frame(nil))
	}
	request, err := http.NewRequest(method, url, body)
	if err != nil {
		return err
	}
	for _, header := range args[2:] {
		name, value, _ := strings.Cut(header, ":")
		request.Header.Add(name, strings.TrimSpace(value))
	}
	protocols := new(http.Protocols)
	if call {
		request.Header.Set("Content-Type", grpc)
		request.Header.Set("TE", "trailers")
		protocols.SetHTTP2(true)
		protocols.SetUnencryptedHTTP2(true)
	} else {
		protocols.SetHTTP1(true)
	}
	transport := &http.Transport{
		Protocols:       protocols,
		TLSClientConfig: &tls.Config{InsecureSkipVerify: true},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, args[0])
		},
	}
	response, err := (&http.Client{
		Timeout:       10 * time.Second,
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}).Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	came := asked{
		Status:   response.StatusCode,
		Location: response.Header.Get("Location"),
		Grpc:     response.Trailer.Get("Grpc-Status"),
		Body:     string(text),
	}
	if call {
		if came.Grpc == "" {
			came.Grpc = response.Header.Get("Grpc-Status")
		}
		if len(text) >= 5 {
			came.Body = string(text[5:])
		}
	}
	if response.TLS != nil && len(response.TLS.PeerCertificates) > 0 {
		came.Names = response.TLS.PeerCertificates[0].DNSNames
	}
	if err := json.NewEncoder(os.Stdout).Encode(came); err != nil {
		return fmt.Errorf("write: %w", err)
	}
	return nil
}
