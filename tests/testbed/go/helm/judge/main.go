// Command judge runs many Helm commands in one process: the root command of the pinned Helm module, as
// its own main function runs it, once for each line of standard input.
//
//	{"arguments": ["template", "istio", "charts/base"]}
//
// For each line it writes one, in the same order:
//
//	{"output": "...", "error": "", "failed": false}
//
// Cobra keeps the initializers of every root command ever made, so a process is meant for some hundred
// lines, not for thousands.
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	helmcmd "helm.sh/helm/v4/pkg/cmd"
	"helm.sh/helm/v4/pkg/kube"
)

type question struct {
	Arguments []string `json:"arguments"`
}

type answer struct {
	Output string `json:"output"`
	Error  string `json:"error"`
	Failed bool   `json:"failed"`
}

func main() {
	kube.ManagedFieldsManager = "helm"
	if err := run(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "judge:", err)
		os.Exit(1)
	}
}

func run(in io.Reader, out io.Writer) error {
	questions := json.NewDecoder(in)
	questions.DisallowUnknownFields()
	buffered := bufio.NewWriter(out)
	answers := json.NewEncoder(buffered)
	answers.SetEscapeHTML(false)
	for {
		var next question
		if err := questions.Decode(&next); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		if err := answers.Encode(helm(next.Arguments)); err != nil {
			return err
		}
		if err := buffered.Flush(); err != nil {
			return err
		}
	}
}

// helm is one run of the command. What it logs goes to standard error, as ever.
func helm(arguments []string) answer {
	var output, complaints bytes.Buffer
	command, err := helmcmd.NewRootCmd(&output, arguments, helmcmd.SetupLogging)
	if err != nil {
		return answer{Error: err.Error(), Failed: true}
	}
	command.SetArgs(arguments)
	command.SetErr(&complaints)
	err = command.Execute()
	return answer{output.String(), complaints.String(), err != nil}
}
