// Package scheme stands in for that of Kubernetes: see the package rest. It knows no kinds: whether those of the chart exist
// in a version of Kubernetes is tested with the schemas of that version. To a chart, .Capabilities.APIVersions is empty.
package scheme

import "k8s.io/apimachinery/pkg/runtime"

// Scheme has no kinds.
var Scheme = runtime.NewScheme()

// AddToScheme adds no kinds.
func AddToScheme(*runtime.Scheme) error { return nil }
