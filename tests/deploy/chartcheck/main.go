// Chartcheck renders and lints a chart as helm does. It reads one JSON object from standard input and writes one to standard
// output. It is the part of helm that tests need: without a cluster, repositories and releases it is built in half the time,
// and in half of that without the clients and types of Kubernetes, for which the folders client-go and
// apiextensions-apiserver stand in.
package main

import (
	"encoding/json"
	"log"
	"os"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
)

// A request says which chart is rendered, and for what.
type request struct {
	Chart       string         `json:"chart"`
	Release     string         `json:"release"`
	Namespace   string         `json:"namespace"`
	KubeVersion string         `json:"kube_version"`
	Values      map[string]any `json:"values"`
}

// A response has the rendered templates by their names, or why they were not rendered, and what the linter found.
type response struct {
	Templates map[string]string `json:"templates"`
	Refusal   string            `json:"refusal"`
	Warnings  []string          `json:"warnings"`
}

func main() {
	var asked request
	if err := json.NewDecoder(os.Stdin).Decode(&asked); err != nil {
		log.Fatal(err)
	}
	kube, err := chartutil.ParseKubeVersion(asked.KubeVersion)
	if err != nil {
		log.Fatal(err)
	}
	answer := response{Warnings: []string{}}
	if answer.Templates, err = render(asked, kube); err != nil {
		answer.Refusal = err.Error()
	}
	for _, found := range lint.AllWithKubeVersion(asked.Chart, asked.Values, asked.Namespace, kube).Messages {
		if found.Severity >= support.WarningSev {
			answer.Warnings = append(answer.Warnings, found.Error())
		}
	}
	if err := json.NewEncoder(os.Stdout).Encode(answer); err != nil {
		log.Fatal(err)
	}
}

func render(asked request, kube *chartutil.KubeVersion) (map[string]string, error) {
	chart, err := loader.Load(asked.Chart)
	if err != nil {
		return nil, err
	}
	release := chartutil.ReleaseOptions{Name: asked.Release, Namespace: asked.Namespace, Revision: 1, IsInstall: true}
	capabilities := &chartutil.Capabilities{KubeVersion: *kube, APIVersions: chartutil.DefaultVersionSet}
	values, err := chartutil.ToRenderValues(chart, asked.Values, release, capabilities)
	if err != nil {
		return nil, err
	}
	return engine.Render(chart, values)
}
