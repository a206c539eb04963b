package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"sync"
	"syscall"
	"time"
)

// tally is what became of one loop's requests.
type tally struct {
	Sent   int      `json:"sent"`
	Failed int      `json:"failed"`
	Open   int      `json:"open"`
	Told   []string `json:"told"`
}

// loop asks each URL again and again, a new connection each time, until SIGTERM, and keeps the tally
// of this pod in a file, so that it outlives the pod. WANT is the only status that is no failure, or
// "closed": any answer but a 200.
func loop(dir string, args []string) error {
	if len(args)%3 != 0 || len(args) == 0 {
		return errors.New("usage: testapp loop DIR NAME WANT URL [NAME WANT URL...]")
	}
	name, err := os.Hostname()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	stop, cancel := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	defer cancel()
	var lock sync.Mutex
	tallies := map[string]*tally{}
	var loops sync.WaitGroup
	client := &http.Client{
		Timeout:   10 * time.Second,
		Transport: &http.Transport{DisableKeepAlives: true},
	}
	for at := 0; at < len(args); at += 3 {
		label, want, url := args[at], args[at+1], args[at+2]
		count := &tally{}
		tallies[label] = count
		loops.Add(1)
		go func() {
			defer loops.Done()
			tick := time.NewTicker(250 * time.Millisecond)
			defer tick.Stop()
			for {
				select {
				case <-stop.Done():
					return
				case <-tick.C:
				}
				status, err := ask(client, url)
				lock.Lock()
				count.Sent++
				wrong := want != strconv.Itoa(status)
				if want == "closed" {
					wrong = status == http.StatusOK
				}
				if status == http.StatusOK && want != "200" {
					count.Open++
				}
				if wrong {
					count.Failed++
					if len(count.Told) < 20 {
						at := time.Now().UTC().Format("15:04:05.000")
						count.Told = append(count.Told, fmt.Sprintf("%s %d %v", at, status, err))
					}
				}
				lock.Unlock()
			}
		}()
	}
	save := func() error {
		lock.Lock()
		defer lock.Unlock()
		text, err := json.Marshal(tallies)
		if err != nil {
			return err
		}
		target := filepath.Join(dir, name+".json")
		if err := os.WriteFile(target+".new", text, 0o666); err != nil {
			return err
		}
		return os.Rename(target+".new", target)
	}
	for {
		select {
		case <-stop.Done():
			loops.Wait()
			return save()
		case <-time.After(250 * time.Millisecond):
			if err := save(); err != nil {
				return err
			}
		}
	}
}

func ask(client *http.Client, url string) (int, error) {
	response, err := client.Get(url)
	if err != nil {
		return 0, err
	}
	defer response.Body.Close()
	_, err = io.Copy(io.Discard, response.Body)
	return response.StatusCode, err
}
