// Command testapp is every small program the test cluster needs, in one static binary.
//
//	testapp                       echo server on $PORT (8080)
//	testapp auth                  external authorizer on $PORT
//	testapp get URL [Name:value]  print status and body; exit 1 unless 2xx
//	testapp ask ADDR URL [Name:value]
//	                              the same at an address, over TLS or in gRPC, told as JSON
//	testapp loop DIR NAME WANT URL...  ask URLs until stopped, tally in DIR/<host>.json
//	testapp pause                 hold a pod's namespaces
//	testapp registry ADDR DIR     read-only image registry over the OCI layout tars in DIR
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	args := os.Args[1:]
	mode := "echo"
	if len(args) > 0 {
		mode, args = args[0], args[1:]
	}
	var err error
	switch {
	case mode == "echo" && len(args) == 0:
		err = serve(":"+port(), draining(http.HandlerFunc(echo)))
	case mode == "auth" && len(args) == 0:
		err = serve(":"+port(), draining(http.HandlerFunc(authorize)))
	case mode == "get" && len(args) > 0:
		err = get(args[0], args[1:])
	case mode == "ask":
		err = askAt(args)
	case mode == "loop" && len(args) > 1:
		err = loop(args[0], args[1:])
	case mode == "pause" && len(args) == 0:
		err = pause()
	case mode == "registry" && len(args) == 2:
		err = serve(args[0], &registry{dir: args[1]})
	default:
		err = errors.New("usage: testapp [echo|auth|get URL [Name:value...]|ask ADDR URL [Name:value...]|loop DIR NAME WANT URL...|pause|registry ADDR DIR]")
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "testapp:", err)
		os.Exit(1)
	}
}

func port() string {
	if p := os.Getenv("PORT"); p != "" {
		return p
	}
	return "8080"
}

// How long a server told to stop still takes new connections: as long as kube-proxy and the
// sidecars need to hear that the pod is going away.
const drain = 3 * time.Second

var stopping = make(chan struct{})

// serve answers until SIGTERM, then drains: still open for new connections, but asking every client
// to leave, then waiting for the requests in flight.
func serve(addr string, handler http.Handler) error {
	listener, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	// HTTP/2 without TLS is what gRPC is spoken in behind a gateway.
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetUnencryptedHTTP2(true)
	server := &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: 10 * time.Second,
		Protocols:         protocols,
	}
	done := make(chan error, 1)
	go func() { done <- server.Serve(listener) }()
	stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	select {
	case err := <-done:
		return err
	case <-stop.Done():
	}
	close(stopping)
	time.Sleep(drain)
	limit, cancelLimit := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancelLimit()
	return server.Shutdown(limit)
}

// draining answers /healthz, and asks clients to leave once the server is stopping.
func draining(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		select {
		case <-stopping:
			w.Header().Set("Connection", "close")
		default:
		}
		if r.URL.Path == "/healthz" {
			_, _ = io.WriteString(w, "ok\n")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// get is the client of tests that run it inside a pod, where there is no curl.
func get(url string, headers []string) error {
	request, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	for _, header := range headers {
		name, value, ok := strings.Cut(header, ":")
		if !ok {
			return fmt.Errorf("header %q is not Name:value", header)
		}
		value = strings.TrimSpace(value)
		if strings.EqualFold(name, "host") {
			request.Host = value
		} else {
			request.Header.Add(name, value)
		}
	}
	client := &http.Client{
		Timeout: 10 * time.Second,
		CheckRedirect: func(*http.Request, []*http.Request) error {
			return http.ErrUseLastResponse
		},
	}
	response, err := client.Do(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		return err
	}
	fmt.Printf("%d\n%s", response.StatusCode, body)
	if response.StatusCode/100 != 2 {
		return errors.New(response.Status)
	}
	return nil
}

// pause keeps a sandbox alive and, as its first process, collects the orphans of a shared pid
// namespace.
func pause() error {
	stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	children := make(chan os.Signal, 1)
	signal.Notify(children, syscall.SIGCHLD)
	for {
		select {
		case <-stop.Done():
			return nil
		case <-children:
			for {
				if pid, err := syscall.Wait4(-1, nil, syscall.WNOHANG, nil); err != nil || pid <= 0 {
					break
				}
			}
		}
	}
}
