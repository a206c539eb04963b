package main

import (
	"archive/tar"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

const (
	manifestType = "application/vnd.oci.image.manifest.v1+json"
	nameKey      = "io.containerd.image.name"
)

// registry serves images by the last part of their name and the tag ("pilot:1.31.0"), whatever
// registry and repository a manifest names, so that charts keep their own image hub.
type registry struct {
	dir   string
	lock  sync.Mutex
	read  map[string]bool
	blobs map[string]blob
	tags  map[string]string
}

type blob struct {
	file   string
	offset int64
	size   int64
}

type descriptor struct {
	Digest      string            `json:"digest"`
	Annotations map[string]string `json:"annotations"`
}

func (r *registry) ServeHTTP(w http.ResponseWriter, request *http.Request) {
	if request.Method != http.MethodGet && request.Method != http.MethodHead {
		w.WriteHeader(http.StatusMethodNotAllowed)
		return
	}
	rest := strings.TrimPrefix(request.URL.Path, "/v2/")
	if rest == "" || rest == "/v2" {
		w.WriteHeader(http.StatusOK)
		return
	}
	parts := strings.Split(rest, "/")
	if len(parts) < 3 {
		http.NotFound(w, request)
		return
	}
	name, kind, reference := parts[len(parts)-3], parts[len(parts)-2], parts[len(parts)-1]
	digest, found, err := r.find(name, kind, reference)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	if digest == "" {
		http.NotFound(w, request)
		return
	}
	file, err := os.Open(found.file)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	defer file.Close()
	media := "application/octet-stream"
	if kind == "manifests" {
		media = manifestType
	}
	w.Header().Set("Content-Type", media)
	w.Header().Set("Content-Length", strconv.FormatInt(found.size, 10))
	w.Header().Set("Docker-Content-Digest", digest)
	if request.Method == http.MethodHead {
		return
	}
	_, _ = io.Copy(w, io.NewSectionReader(file, found.offset, found.size))
}

// find looks again at the directory when it does not know a name: images are added while it runs.
func (r *registry) find(name, kind, reference string) (string, blob, error) {
	r.lock.Lock()
	defer r.lock.Unlock()
	look := func() (string, blob, bool) {
		digest := reference
		if kind == "manifests" && !strings.HasPrefix(reference, "sha256:") {
			digest = r.tags[name+":"+reference]
		}
		found, ok := r.blobs[digest]
		return digest, found, ok
	}
	if digest, found, ok := look(); ok {
		return digest, found, nil
	}
	if err := r.scan(); err != nil {
		return "", blob{}, err
	}
	if digest, found, ok := look(); ok {
		return digest, found, nil
	}
	return "", blob{}, nil
}

func (r *registry) scan() error {
	files, err := filepath.Glob(filepath.Join(r.dir, "*.tar"))
	if err != nil {
		return err
	}
	if r.read == nil {
		r.read, r.blobs, r.tags = map[string]bool{}, map[string]blob{}, map[string]string{}
	}
	for _, file := range files {
		if r.read[file] {
			continue
		}
		if err := r.index(file); err != nil {
			return err
		}
		r.read[file] = true
	}
	return nil
}

func (r *registry) index(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	archive := tar.NewReader(file)
	for {
		header, err := archive.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		offset, err := file.Seek(0, io.SeekCurrent)
		if err != nil {
			return err
		}
		if digest, ok := strings.CutPrefix(header.Name, "blobs/sha256/"); ok {
			r.blobs["sha256:"+digest] = blob{file: name, offset: offset, size: header.Size}
		}
		if header.Name != "index.json" {
			continue
		}
		var index struct {
			Manifests []descriptor `json:"manifests"`
		}
		if err := json.NewDecoder(archive).Decode(&index); err != nil {
			return err
		}
		for _, manifest := range index.Manifests {
			r.tags[path.Base(manifest.Annotations[nameKey])] = manifest.Digest
		}
	}
}
