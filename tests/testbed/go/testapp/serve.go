package main

import (
	"encoding/json"
	"net/http"
	"net/url"
	"os"
	"strings"
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
	told := seen{
		Method:  r.Method,
		Host:    r.Host,
		Path:    r.URL.Path,
		Query:   r.URL.RawQuery,
		Headers: r.Header,
		Pod:     pod,
	}
	if strings.HasPrefix(r.Header.Get("Content-Type"), grpc) {
		answerCall(w, r, told)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	// Told in a header too: the answer to HEAD has no body.
	w.Header().Set("X-Pod", pod)
	_ = json.NewEncoder(w).Encode(told)
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
