// Command payload writes an Istio release payload: the charts and profiles of the istio.io/istio
// module this program is built with, laid out and stamped as in a release archive.
//
//	payload OUT.tar.gz VERSION
//
// The same module and version always give the same bytes: entries are in path order, without times.
package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"

	"istio.io/istio/manifests"
)

var (
	// Source trees say 1.0.0 in every chart; a release carries its own version.
	chartVersion = regexp.MustCompile(`(?m)^(version|appVersion): 1\.0\.0$`)
	// Source trees say `latest`; a release points at its own images.
	imageTag = regexp.MustCompile(`(?m)^(\s*tag:) latest$`)
)

func main() {
	if len(os.Args) != 3 {
		fmt.Fprintln(os.Stderr, "usage: payload OUT.tar.gz VERSION")
		os.Exit(2)
	}
	archive, err := build(os.Args[2])
	if err == nil {
		err = replace(os.Args[1], archive)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "payload:", err)
		os.Exit(1)
	}
}

func build(version string) ([]byte, error) {
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	archive := tar.NewWriter(zip)
	err := fs.WalkDir(manifests.FS, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(manifests.FS, name)
		if err != nil {
			return err
		}
		data = stamp(name, data, version)
		header := tar.Header{
			Name: path.Join("istio-"+version, "manifests", name),
			Mode: 0o644,
			Size: int64(len(data)),
		}
		if err := archive.WriteHeader(&header); err != nil {
			return err
		}
		_, err = archive.Write(data)
		return err
	})
	if err != nil {
		return nil, err
	}
	if err := archive.Close(); err != nil {
		return nil, err
	}
	if err := zip.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

func stamp(name string, data []byte, version string) []byte {
	switch {
	case path.Base(name) == "Chart.yaml":
		return chartVersion.ReplaceAll(data, []byte("${1}: "+version))
	case path.Base(name) == "values.yaml", path.Dir(name) == "profiles":
		return imageTag.ReplaceAll(data, []byte("${1} "+version))
	}
	return data
}

// replace writes a whole file or nothing: a reader never sees half an archive.
func replace(target string, data []byte) error {
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return err
	}
	part := target + ".part"
	if err := os.WriteFile(part, data, 0o644); err != nil {
		return err
	}
	return os.Rename(part, target)
}
