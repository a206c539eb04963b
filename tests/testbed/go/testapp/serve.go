package main

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
)

// seen is what the echo server tells about a request.
type seen struct {
	Method  string      `json:"method"`
	Host    string      `json:"host"`
	Path    string      `json:"path"`
	Query   string      `json:"query"`
	Headers http.Header `json:"headers"`
	Pod     string      `json:"pod"`
}

func echo(w http.ResponseWriter, r *http.Request) {
	pod, _ := os.Hostname()
	w.Header().Set("Content-Type", "application/json")
	// Told in a header too: the answer to HEAD has no body.
	w.Header().Set("X-Pod", pod)
	_ = json.NewEncoder(w).Encode(seen{
		Method:  r.Method,
		Host:    r.Host,
		Path:    r.URL.Path,
		Query:   r.URL.RawQuery,
		Headers: r.Header,
		Pod:     pod,
	})
}

// authorize allows whoever shows a session cookie and passes its value on as the user.
func authorize(w http.ResponseWriter, r *http.Request) {
	session, err := r.Cookie("session")
	if err != nil || session.Value == "" {
		http.Error(w, "no session", http.StatusUnauthorized)
		return
	}
	user := session.Value
	if plain, err := url.QueryUnescape(user); err == nil {
		user = plain
	}
	w.Header().Set("kubeflow-userid", user)
	w.WriteHeader(http.StatusOK)
}
